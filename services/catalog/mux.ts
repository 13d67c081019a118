/**
 * Several sources as one.
 *
 * Precedence is the order in which sources are given. The first that has a
 * service owns it whole: two descriptions of one service are never blended. Its
 * endpoints are the owner's as well, unless the owner has none to say of it (as
 * where services and endpoints come from different places): then they are those
 * of the first source that has any.
 *
 * @module
 */

import type { SourceEntries } from "./changes.ts";
import type { Endpoint, Service } from "./model/model.ts";
import type { Snapshot } from "./snapshot.ts";

/** The next snapshot after some services were touched; the same if none differs. */
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
