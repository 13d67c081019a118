/**
 * A source of the catalog that says what a test tells it to.
 *
 * @module
 */

import {
  DIRECT,
  type Endpoint,
  keyOf,
  NO_AFFINITY,
  NO_POLICY,
  type Service,
  type ServiceEndpoints,
} from "../../../services/catalog/model/model.ts";
import type {
  CatalogChange,
  CatalogPart,
  Sink,
  Source,
} from "../../../services/catalog/model/source.ts";

/** See the module description. */
export class ScriptedSource implements Source {
  #given: ScriptedSink | undefined;
  reconciles = 0;
  isStopped = false;

  /** @param atStart What it says when it is started: nothing, or that this is all. */
  constructor(
    readonly name: string = "script",
    readonly atStart: "silent" | "synced" = "silent",
  ) {}

  /** Where it says it; there after the catalog's start. */
  get sink(): ScriptedSink {
    if (this.#given === undefined) throw new TypeError("Nobody has started it");
    return this.#given;
  }

  start(sink: Sink): void {
    this.#given = new ScriptedSink(sink);
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

/** A sink, with changes in the words of tests: lists. */
export class ScriptedSink implements Sink {
  constructor(private readonly sink: Sink) {}

  add(part: CatalogPart): void {
    this.change(changeOf(part));
  }

  remove({ services = [], endpoints = [] }: {
    readonly services?: readonly string[];
    readonly endpoints?: readonly string[];
  }): void {
    const gone = (keys: readonly string[]) =>
      new Map(keys.map((key) => [key, undefined]));
    this.change({ services: gone(services), endpoints: gone(endpoints) });
  }

  change(change: CatalogChange): void {
    this.sink.change(change);
  }

  set(part: CatalogPart): void {
    this.sink.set(part);
  }

  repair(part: CatalogPart): void {
    this.sink.repair(part);
  }

  refused(problem: string): void {
    this.sink.refused(problem);
  }

  synced(): void {
    this.sink.synced();
  }

  failed(problem: string, retryMs?: number): void {
    this.sink.failed(problem, retryMs);
  }
}

/** All of a part is new, or other. */
export function changeOf(
  { services = [], endpoints = [] }: CatalogPart,
): CatalogChange {
  return {
    services: new Map(services.map((service) => [keyOf(service), service])),
    endpoints: new Map(
      endpoints.map(({ service, endpoints }) => [service, endpoints]),
    ),
  };
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
