/**
 * The catalog as it is at one moment. A snapshot never changes; the next one
 * shares all unchanged objects with it, so that `===` on a service, or on a
 * list of endpoints, means "unchanged".
 *
 * @module
 */

import { hostPort } from "../../proto/peer/host_port.ts";
import { type Endpoint, networkOf, type Service } from "./model/model.ts";
import type { SourceEntries } from "./changes.ts";
import { memoized } from "./model/memo.ts";

/** All keys are `namespace/name`. */
export interface Snapshot {
  /** Counts up by one; 0 before anything was known. */
  readonly version: number;
  readonly services: ReadonlyMap<string, Service>;
  /**
   * It may have endpoints of services that do not exist (yet): the two arrive
   * independently. A service has no entry while no source has spoken of its
   * endpoints.
   */
  readonly endpoints: ReadonlyMap<string, readonly Endpoint[]>;
}

export const EMPTY_SNAPSHOT: Snapshot = Object.freeze({
  version: 0,
  services: new Map(),
  endpoints: new Map(),
});

/** One port of one endpoint: what is dialed. */
export interface Target {
  readonly address: string;
  readonly port: number;
  readonly endpoint: Endpoint;
}

const NOTHING: readonly Target[] = Object.freeze([]);

/** By list of endpoints, then by the port's name. */
const known = memoized((_list: readonly Endpoint[]) =>
  new Map<string, readonly Target[]>()
);

/**
 * All targets of a service's port, in the order of the source, each (address,
 * port, network) once: while a slice is rewritten, one endpoint is in two of them. The
 * same array for as long as the endpoints are the same.
 */
export function targetsOf(
  { endpoints }: Snapshot,
  key: string,
  portName: string,
): readonly Target[] {
  const list = endpoints.get(key);
  return list === undefined ? NOTHING : targetsIn(list, portName);
}

/** The same for a list of a catalog, which never changes. */
export function targetsIn(
  list: readonly Endpoint[],
  portName: string,
): readonly Target[] {
  return known(list)
    .getOrInsertComputed(portName, () => collect(list, portName));
}

/**
 * Those that may get a new connection or session: the ready ones, and if there
 * are none, those that still answer while they go away (kube-proxy's rule). For
 * UDP as well, where Cilium once kept choosing endpoints that went away.
 */
export function usableTargets(targets: readonly Target[]): readonly Target[] {
  const inState = (state: Endpoint["state"]) =>
    targets.filter(({ endpoint }) => endpoint.state === state);
  const ready = inState("ready");
  return ready.length > 0 ? ready : inState("serving");
}

/** How good an endpoint is; of two that are one, the better word counts. */
const RANK = { ready: 0, serving: 1, terminating: 2, unready: 3 } as const;

function collect(
  endpoints: readonly Endpoint[],
  portName: string,
): readonly Target[] {
  const all = endpoints.flatMap((endpoint) => targetsAt(endpoint, portName));
  // Ten thousand texts are only made where two could be one.
  const addresses = new Set(all.map(({ address }) => address));
  if (addresses.size === all.length) return Object.freeze(all);
  const targets = new Map<string, Target>();
  for (const target of all) {
    const key = targetKeyOf(target);
    const other = targets.get(key)?.endpoint;
    const { state } = target.endpoint;
    if (other === undefined || RANK[state] < RANK[other.state]) {
      targets.set(key, target);
    }
  }
  return Object.freeze([...targets.values()]);
}

function targetsAt(endpoint: Endpoint, portName: string): readonly Target[] {
  const { address, ports } = endpoint;
  return ports.filter(({ name }) => name === portName)
    .map(({ port }) => Object.freeze({ address, port, endpoint }));
}

/** `host:port`, and behind an agent that is named also which, `@id=edge-1`. */
export function targetKeyOf({ address, port, endpoint }: Target): string {
  return `${hostPort(address, port)}${networkOf(endpoint)}`;
}

/**
 * The next snapshot after some services were touched; the same if none differs.
 *
 * Precedence is the order in which sources are given. The first that has a
 * service owns it whole: two descriptions of one service are never mixed. The
 * owner's endpoints count as well. If the owner knows no endpoints of it
 * (services and endpoints may come from different places), those of the first
 * source that has some count.
 */
export function nextSnapshot(
  before: Snapshot,
  sources: readonly SourceEntries[],
  touched: Iterable<string>,
): Snapshot {
  const services = new Overlay(before.services);
  const endpoints = new Overlay(before.endpoints);
  for (const key of touched) {
    const owner = sources.find((source) => source.services.has(key));
    services.put(key, owner?.services.get(key));
    endpoints.put(key, endpointsOf(key, owner, sources));
  }
  if (!services.isChanged && !endpoints.isChanged) return before;
  return Object.freeze({
    version: before.version + 1,
    services: services.map,
    endpoints: endpoints.map,
  });
}

function endpointsOf(
  key: string,
  owner: SourceEntries | undefined,
  sources: readonly SourceEntries[],
): readonly Endpoint[] | undefined {
  return owner?.endpoints.get(key) ??
    sources.find((source) => source.endpoints.has(key))?.endpoints.get(key);
}

/** Copies a map when the first entry of it changes, and not before. */
class Overlay<T extends Service | readonly Endpoint[]> {
  #map: ReadonlyMap<string, T>;
  #copy: Map<string, T> | undefined;

  constructor(map: ReadonlyMap<string, T>) {
    this.#map = map;
  }

  get map(): ReadonlyMap<string, T> {
    return this.#map;
  }

  get isChanged(): boolean {
    return this.#copy !== undefined;
  }

  put(key: string, value: T | undefined): void {
    if (this.#map.get(key) === value) return;
    this.#map = this.#copy ??= new Map(this.#map);
    if (value === undefined) this.#copy.delete(key);
    else this.#copy.set(key, value);
  }
}
