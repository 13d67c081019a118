/**
 * EndpointSlices, joined to the endpoints of services.
 *
 * A service has several of them: per address family, per set of ports, and
 * because one holds a hundred endpoints. While they are rewritten, one endpoint
 * is in two.
 *
 * @module
 */

import { objectKeyOf } from "../../../../neighbours/kubernetes/object_copy.ts";
import type { EndpointSlice } from "../../../../neighbours/kubernetes/objects.ts";
import {
  DEFAULT_WEIGHT,
  DIRECT,
  type Endpoint,
  endpointKeyOf,
  type EndpointPort,
  type EndpointState,
  keyOf,
  type ServiceEndpoints,
} from "../../model/model.ts";
import { canonicalAddress } from "../../model/validate.ts";
import { protocolFrom } from "./kubernetes_service.ts";

/** Which service a slice belongs to. */
const SERVICE_NAME = "kubernetes.io/service-name";

/** When two slices disagree about an endpoint, the earlier row here wins. */
const STATES: readonly EndpointState[] = [
  "ready",
  "serving",
  "terminating",
  "unready",
];

type SliceEndpoint = NonNullable<EndpointSlice["endpoints"]>[number];

export class EndpointSlices {
  /** By service, then by the slice's own key. */
  readonly #slices = new Map<string, Map<string, EndpointSlice>>();

  /** @returns The service of the slice; `undefined` when it belongs to none. */
  put(slice: EndpointSlice): string | undefined {
    const service = serviceOf(slice);
    if (service === undefined) return undefined;
    const slices = this.#slices.getOrInsertComputed(service, () => new Map());
    slices.set(objectKeyOf(slice), slice);
    return service;
  }

  /**
   * @returns The former service of the slice; `undefined` when it belonged to
   *   none.
   */
  remove(slice: EndpointSlice): string | undefined {
    const service = serviceOf(slice);
    if (service === undefined) return undefined;
    const slices = this.#slices.get(service);
    slices?.delete(objectKeyOf(slice));
    if (slices?.size === 0) this.#slices.delete(service);
    return service;
  }

  /** @returns `undefined` when the service has no slice at all. */
  endpointsOf(service: string): readonly Endpoint[] | undefined {
    const slices = this.#slices.get(service);
    if (slices === undefined) return undefined;
    const inOrder = [...slices].sort(([a], [b]) => a < b ? -1 : 1);
    const found = new Map<string, Endpoint>();
    for (const [, slice] of inOrder) {
      const ports = portsOf(slice);
      for (const given of slice.endpoints ?? []) {
        const endpoint = endpointFrom(given, ports);
        if (endpoint === undefined) continue;
        const key = endpointKeyOf(endpoint);
        const other = found.get(key);
        if (other === undefined || isBetter(endpoint, other)) {
          found.set(key, endpoint);
        }
      }
    }
    return [...found.values()];
  }

  /** Of every service that has slices. */
  all(): readonly ServiceEndpoints[] {
    return [...this.#slices.keys()]
      .map((service) => ({ service, endpoints: this.endpointsOf(service)! }));
  }
}

/** Addresses that one refusal names. */
const NAMED_MAX = 3;

/** @returns Which endpoints of a slice are left out, and why; `undefined`: none. */
export function sliceProblem(slice: EndpointSlice): string | undefined {
  const bad = (slice.endpoints ?? [])
    .map(({ addresses }) => addresses[0] ?? "")
    .filter((address) => canonicalAddress(address) === undefined);
  if (bad.length === 0) return undefined;
  const more = bad.length > NAMED_MAX ? " …" : "";
  return `EndpointSlice ${objectKeyOf(slice)}: ${bad.length} endpoints are ` +
    `left out; saw ${
      bad.slice(0, NAMED_MAX).map((address) => JSON.stringify(address))
        .join(", ")
    }${more}, wanted an IP address or a host name`;
}

function serviceOf({ metadata }: EndpointSlice): string | undefined {
  const name = metadata.labels?.[SERVICE_NAME] ?? "";
  const { namespace = "" } = metadata;
  return name === "" ? undefined : keyOf({ namespace, name });
}

/** Sorted: slices of one service may have them in any order. */
function portsOf({ ports }: EndpointSlice): readonly EndpointPort[] {
  return (ports ?? []).flatMap(({ name, port, protocol }) =>
    // Without a number it means any port, which is not for proxies.
    typeof port !== "number" || protocolFrom(protocol) === undefined
      ? []
      : [{ name: name ?? "", port }]
  ).sort((a, b) => a.name < b.name ? -1 : 1);
}

function endpointFrom(
  { addresses, conditions, nodeName, zone, hints }: SliceEndpoint,
  ports: readonly EndpointPort[],
): Endpoint | undefined {
  // All of them are the same endpoint's; consumers take the first.
  const address = canonicalAddress(addresses[0] ?? "");
  if (address === undefined) return undefined;
  const forZones = hints?.forZones?.map(({ name }) => name) ?? [];
  return {
    address,
    ports,
    state: stateOf(conditions),
    ...nodeName === undefined ? {} : { node: nodeName },
    ...zone === undefined ? {} : { zone },
    ...forZones.length === 0 ? {} : { forZones },
    weight: DEFAULT_WEIGHT,
    via: DIRECT,
  };
}

/** The API's three conditions, of which only some combinations mean anything. */
function stateOf(
  { ready = true, serving = ready, terminating = false }:
    & SliceEndpoint["conditions"]
    & object = {},
): EndpointState {
  if (ready) return "ready";
  if (!terminating) return "unready";
  return serving ? "serving" : "terminating";
}

function isBetter(a: Endpoint, b: Endpoint): boolean {
  return STATES.indexOf(a.state) < STATES.indexOf(b.state);
}
