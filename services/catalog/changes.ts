/**
 * The state of one source, and SET, ADD and REMOVE on it. An unchanged entry
 * stays the same object, because later steps compare identities.
 *
 * @module
 */

import {
  type Endpoint,
  endpointKeyOf,
  keyOf,
  type Service,
  type ServiceEndpoints,
} from "./model/model.ts";
import { freeze, isSame } from "./model/plain_data.ts";
import type { CatalogPart, PartKeys } from "./model/source.ts";
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
    const change = new Change();
    if (services !== undefined) {
      this.#removeAllBut(new Set(services.map(keyOf)), "services", change);
      this.#put({ services }, change);
    }
    if (endpoints !== undefined) {
      const keys = new Set(endpoints.map(({ service }) => service));
      this.#removeAllBut(keys, "endpoints", change);
      this.#put({ endpoints }, change);
    }
    return change;
  }

  add(part: CatalogPart): Outcome {
    const change = new Change();
    this.#put(part, change);
    return change;
  }

  remove({ services = [], endpoints = [] }: PartKeys): Outcome {
    const change = new Change();
    for (const key of services) this.#drop("services", key, change);
    for (const key of endpoints) this.#drop("endpoints", key, change);
    return change;
  }

  #put({ services = [], endpoints = [] }: CatalogPart, change: Change): void {
    for (const value of services) this.#putService(value, change);
    for (const value of endpoints) this.#putEndpoints(value, change);
  }

  #putService(value: Service, change: Change): void {
    const key = keyOf(value);
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

  #putEndpoints(value: ServiceEndpoints, change: Change): void {
    const { service: key, endpoints } = value;
    const previous = this.#endpoints.get(key);
    if (previous !== undefined && isSame(previous, endpoints)) return;
    const count = this.#endpointCount + endpoints.length -
      (previous?.length ?? 0);
    const known = new Set(previous);
    const problem = checkEndpoints(value, known) ??
      (count > CATALOG_ENDPOINTS_MAX
        ? `${key}: one source has at most ${CATALOG_ENDPOINTS_MAX} endpoints`
        : undefined);
    if (!change.takes(key, problem)) return;
    this.#endpoints.set(key, freeze(shared(endpoints, known)));
    this.#endpointCount = count;
  }

  #removeAllBut(
    keys: ReadonlySet<string>,
    what: "services" | "endpoints",
    change: Change,
  ): void {
    const known = what === "services" ? this.#services : this.#endpoints;
    for (const key of [...known.keys()]) {
      if (!keys.has(key)) this.#drop(what, key, change);
    }
  }

  #drop(what: "services" | "endpoints", key: string, change: Change): void {
    if (what === "endpoints") {
      this.#endpointCount -= this.#endpoints.get(key)?.length ?? 0;
    }
    const known = what === "services" ? this.#services : this.#endpoints;
    if (known.delete(key)) change.touch(key);
  }
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

/** The new list, with those of its endpoints that were there before. */
function shared(
  endpoints: readonly Endpoint[],
  previous: ReadonlySet<Endpoint>,
): readonly Endpoint[] {
  if (endpoints.every((endpoint) => previous.has(endpoint))) return endpoints;
  const stays = new Set(endpoints);
  const others = new Map<string, Endpoint>();
  for (const old of previous) {
    if (!stays.has(old)) others.set(endpointKeyOf(old), old);
  }
  return endpoints.map((endpoint) => {
    if (previous.has(endpoint)) return endpoint;
    const old = others.get(endpointKeyOf(endpoint));
    return old !== undefined && isSame(old, endpoint) ? old : endpoint;
  });
}
