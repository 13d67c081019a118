/**
 * A source of the catalog that says what a test tells it to.
 *
 * @module
 */

import {
  DIRECT,
  type Endpoint,
  NO_AFFINITY,
  NO_POLICY,
  type Service,
  type ServiceEndpoints,
} from "../../../services/catalog/model/model.ts";
import type { Sink, Source } from "../../../services/catalog/model/source.ts";

/** See the module description. */
export class ScriptedSource implements Source {
  #given: Sink | undefined;
  reconciles = 0;
  isStopped = false;

  /** @param atStart What it says when it is started: nothing, or that this is all. */
  constructor(
    readonly name: string = "script",
    readonly atStart: "silent" | "synced" = "silent",
  ) {}

  /** Where it says it; there after the catalog's start. */
  get sink(): Sink {
    if (this.#given === undefined) throw new TypeError("Nobody has started it");
    return this.#given;
  }

  start(sink: Sink): void {
    this.#given = sink;
    if (this.atStart === "synced") sink.synced();
  }

  stop(): Promise<void> {
    this.isStopped = true;
    return Promise.resolve();
  }

  reconcile(): Promise<void> {
    this.reconciles++;
    return Promise.resolve();
  }
}

/** `NAME` or `NAMESPACE/NAME`, with one TCP port without a name. */
export function serviceOf(
  text: string,
  port = 80,
  rest: Partial<Service> = {},
): Service {
  const [name = "", namespace = "default"] = text.split("/").toReversed();
  return {
    namespace,
    name,
    ports: [{ name: "", port, protocol: "tcp" }],
    affinity: NO_AFFINITY,
    policy: NO_POLICY,
    ...rest,
  };
}

/** `NAMESPACE/NAME` or `NAME`, at these `ADDRESS:PORT`. */
export function endpointsOf(
  text: string,
  ...addresses: readonly string[]
): ServiceEndpoints {
  return {
    service: text.includes("/") ? text : `default/${text}`,
    endpoints: addresses.map((address) => endpointOf(address)),
  };
}

/** A ready endpoint at `ADDRESS:PORT`, for the port without a name. */
export function endpointOf(
  address: string,
  rest: Partial<Endpoint> = {},
): Endpoint {
  const colon = address.lastIndexOf(":");
  return {
    address: address.slice(0, colon),
    ports: [{ name: "", port: Number(address.slice(colon + 1)) }],
    state: "ready",
    weight: 1,
    via: DIRECT,
    ...rest,
  };
}
