/**
 * The state of one source, and changes of it. An unchanged entry
 * stays the same object, because later steps compare identities.
 *
 * @module
 */

import {
  type Endpoint,
  endpointKeyOf,
  keyOf,
  type Service,
} from "./model/model.ts";
import { freeze, isSame } from "./model/plain_data.ts";
import type { CatalogChange, CatalogPart } from "./model/source.ts";
import {
  CATALOG_ENDPOINTS_MAX,
  checkEndpoints,
  checkService,
  SERVICES_MAX,
} from "./model/validate.ts";

/** The result of a change. */
export interface Outcome {
  /** Services whose entry, or whose endpoints, are not what they were. */
  readonly touched: ReadonlySet<string>;
  /** How many entries differ from before. */
  readonly count: number;
  /** Why entries were not taken. */
  readonly refused: readonly string[];
}

export class SourceEntries {
  readonly #services = new Map<string, Service>();
  readonly #endpoints = new Map<string, readonly Endpoint[]>();
  #endpointCount = 0;

  get services(): ReadonlyMap<string, Service> {
    return this.#services;
  }

  get endpoints(): ReadonlyMap<string, readonly Endpoint[]> {
    return this.#endpoints;
  }

  /** Over all services. */
  get endpointCount(): number {
    return this.#endpointCount;
  }

  set({ services, endpoints }: CatalogPart): Outcome {
    return this.change({
      ...services && {
        services: instead(
          this.#services,
          services.map((service) => [keyOf(service), service]),
        ),
      },
      ...endpoints && {
        endpoints: instead(
          this.#endpoints,
          endpoints.map(({ service, endpoints }) => [service, endpoints]),
        ),
      },
    });
  }

  change({ services = NONE, endpoints = NONE }: CatalogChange): Outcome {
    const change = new Change();
    // What goes makes room for what comes.
    for (const [key, value] of services) {
      if (value === undefined && this.#services.delete(key)) change.touch(key);
    }
    for (const [key, value] of endpoints) {
      if (value !== undefined) continue;
      this.#endpointCount -= this.#endpoints.get(key)?.length ?? 0;
      if (this.#endpoints.delete(key)) change.touch(key);
    }
    for (const [key, value] of services) {
      if (value !== undefined) this.#putService(key, value, change);
    }
    for (const [key, value] of endpoints) {
      if (value !== undefined) this.#putEndpoints(key, value, change);
    }
    return change;
  }

  #putService(key: string, value: Service, change: Change): void {
    const previous = this.#services.get(key);
    if (previous !== undefined && isSame(previous, value)) return;
    const isOneTooMany = previous === undefined &&
      this.#services.size >= SERVICES_MAX;
    const problem = checkService(value) ??
      (isOneTooMany
        ? `${key}: one source has at most ${SERVICES_MAX} services`
        : undefined);
    if (!change.takes(key, problem)) return;
    this.#services.set(key, freeze(value));
  }

  #putEndpoints(
    service: string,
    endpoints: readonly Endpoint[],
    change: Change,
  ): void {
    const previous = this.#endpoints.get(service);
    const list = shared(endpoints, previous ?? NO_ENDPOINTS);
    if (list === previous) return;
    const count = this.#endpointCount + list.length - (previous?.length ?? 0);
    const known = new Set(previous);
    const problem = checkEndpoints({ service, endpoints: list }, known) ??
      (count > CATALOG_ENDPOINTS_MAX
        ? `${service}: one source has at most ${CATALOG_ENDPOINTS_MAX} endpoints`
        : undefined);
    if (!change.takes(service, problem)) return;
    this.#endpoints.set(service, freeze(list));
    this.#endpointCount = count;
  }
}

const NONE: ReadonlyMap<string, undefined> = new Map();
const NO_ENDPOINTS: readonly Endpoint[] = [];

/** The change that leaves just these. */
function instead<T>(
  known: ReadonlyMap<string, T>,
  these: readonly (readonly [string, T])[],
): ReadonlyMap<string, T | undefined> {
  const gone = known.keys().map((key) => [key, undefined] as const);
  return new Map<string, T | undefined>([...gone, ...these]);
}

class Change implements Outcome {
  readonly touched = new Set<string>();
  readonly refused: string[] = [];
  count = 0;

  touch(key: string): void {
    this.touched.add(key);
    this.count++;
  }

  /** @param problem What is wrong with the entry. */
  takes(key: string, problem: string | undefined): boolean {
    if (problem !== undefined) this.refused.push(problem);
    else this.touch(key);
    return problem === undefined;
  }
}

/**
 * The new list, with those of its endpoints that were there before; the previous
 * list if none differs. Most are where they were: only the others are looked
 * for by their key.
 */
function shared(
  endpoints: readonly Endpoint[],
  previous: readonly Endpoint[],
): readonly Endpoint[] {
  const isThere = (endpoint: Endpoint, at: number) =>
    at < previous.length && isSame(previous[at], endpoint);
  const moved = endpoints.map((endpoint, at) => !isThere(endpoint, at));
  if (endpoints.length === previous.length && !moved.includes(true)) {
    return previous;
  }
  const others = new Map<string, Endpoint>();
  for (const [at, old] of previous.entries()) {
    if (moved[at] !== false) others.set(endpointKeyOf(old), old);
  }
  return endpoints.map((endpoint, at) => {
    if (!moved[at]) return previous[at]!;
    const old = others.size > 0 && others.get(endpointKeyOf(endpoint));
    return old && isSame(old, endpoint) ? old : endpoint;
  });
}
