/**
 * Services put together again from what discovery says of their ports, and only
 * when it is whole: a service appears, or becomes another one, when each of its
 * ports has its cluster, its listener and its load assignment. Until then it
 * stays as it was, so a change that comes in parts is never half a change.
 *
 * Pure: resources in, services out. Knows neither streams nor catalogs.
 *
 * Reading order: `change`, `take`, `#settle`.
 *
 * @module
 */

import {
  type Endpoint,
  keyOf,
  type Service,
} from "../../catalog/model/model.ts";
import { isSame } from "../../catalog/model/plain_data.ts";
import {
  resourceNameOf,
  serviceOfResource,
} from "../../catalog/model/resource_names.ts";

/** What a cluster says: the whole service that its port is of. */
export interface ClusterContent {
  readonly kind: "cluster";
  readonly service: Service;
  /** Name of the port. */
  readonly port: string;
  /** By which its assignment is asked for. */
  readonly assignment: string;
}

/** What an assignment says, in its order. */
export interface AssignmentContent {
  readonly kind: "endpoints";
  readonly endpoints: readonly Endpoint[];
}

/** Listeners, and route configurations: that they are there is all. */
export interface PresenceContent {
  readonly kind: "listener" | "route";
}

/** What a resource says to a proxy. */
export type Content = ClusterContent | AssignmentContent | PresenceContent;

/** A service that is whole, and where it is to be had. */
export interface WholeService {
  readonly service: Service;
  readonly endpoints: readonly Endpoint[];
}

/** What is other than it was: the service as it is now, or that it is gone. */
export type Settled = ReadonlyMap<string, WholeService | undefined>;

/** A cluster, and how new what it says is. */
interface Cluster extends ClusterContent {
  readonly turn: number;
}

export class ServiceAssembly {
  /** By name. */
  readonly #clusters = new Map<string, Cluster>();
  readonly #assignments = new Map<string, readonly Endpoint[]>();
  readonly #listeners = new Set<string>();
  /** Names of clusters, by service. */
  readonly #byService = new Map<string, Set<string>>();
  /** Services whose endpoints an assignment says. */
  readonly #byAssignment = new Map<string, Set<string>>();
  readonly #whole = new Map<string, WholeService>();
  readonly #touched = new Set<string>();
  readonly #waiting = new Set<string>();
  #turn = 0;

  /** Services that are whole, or were and wait for the rest of a change. */
  get whole(): ReadonlyMap<string, WholeService> {
    return this.#whole;
  }

  /** What keeps services back, for people; `undefined`: nothing. */
  waitsFor(key: string): string | undefined {
    const candidates = this.#candidates(key);
    if (candidates.some((service) => this.#missing(service) === undefined)) {
      return undefined;
    }
    const [first] = candidates;
    return first && this.#missing(first);
  }

  /** Services that wait for something. */
  get waiting(): ReadonlySet<string> {
    return this.#waiting;
  }

  /** A resource is new, other, or gone. */
  change(
    kind: Content["kind"],
    name: string,
    content: Content | undefined,
  ): void {
    switch (kind) {
      case "cluster":
        return this.#changeCluster(name, content as ClusterContent | undefined);
      case "endpoints": {
        const assignment = content as AssignmentContent | undefined;
        if (assignment === undefined) this.#assignments.delete(name);
        else this.#assignments.set(name, assignment.endpoints);
        for (const key of this.#byAssignment.get(name) ?? []) {
          this.#touched.add(key);
        }
        return;
      }
      case "listener":
        if (content === undefined) this.#listeners.delete(name);
        else this.#listeners.add(name);
        this.#touched.add(serviceOfResource(name));
        return;
      case "route":
        // A proxy that carries bytes sees no requests.
        return;
    }
  }

  /** Settles all that was changed since this was last called. */
  take(): Settled {
    this.#turn++;
    const settled = new Map<string, WholeService | undefined>();
    for (const key of this.#touched) {
      const before = this.#whole.get(key);
      const after = this.#settle(key, before);
      if (this.waitsFor(key) === undefined) this.#waiting.delete(key);
      else this.#waiting.add(key);
      if (after === before) continue;
      if (after === undefined) this.#whole.delete(key);
      else this.#whole.set(key, after);
      settled.set(key, after);
    }
    this.#touched.clear();
    return settled;
  }

  #changeCluster(name: string, content: ClusterContent | undefined): void {
    const before = this.#clusters.get(name);
    if (before !== undefined) {
      const key = keyOf(before.service);
      this.#touched.add(key);
      removeFrom(this.#byService, key, name);
      removeFrom(this.#byAssignment, before.assignment, key);
      this.#clusters.delete(name);
    }
    if (content === undefined) return;
    const key = keyOf(content.service);
    this.#touched.add(key);
    addTo(this.#byService, key, name);
    addTo(this.#byAssignment, content.assignment, key);
    this.#clusters.set(name, { ...content, turn: this.#turn });
  }

  #settle(
    key: string,
    before: WholeService | undefined,
  ): WholeService | undefined {
    const service = this.#candidates(key)
      .find((candidate) => this.#missing(candidate) === undefined);
    if (service !== undefined) return this.#wholeOf(service, before);
    if (before === undefined || !this.#byService.has(key)) return undefined;
    const names = before.service.ports.map((port) => resourceNameOf(key, port));
    // Listeners go first when a service does; its clusters linger.
    if (!names.some((name) => this.#listeners.has(name))) return undefined;
    // The rest of a change is under way; where its endpoints are is no part of
    // it, as long as all its assignments are there.
    const isServed = names.every((name) =>
      this.#assignments.has(this.#clusters.get(name)?.assignment ?? "")
    );
    return isServed ? this.#wholeOf(before.service, before) : before;
  }

  /**
   * What the newest clusters of a service say that it is. Older ones linger
   * while a service changes its ports: they say what it was.
   */
  #candidates(key: string): Service[] {
    const clusters = [...this.#byService.get(key) ?? []]
      .map((name) => this.#clusters.get(name)!);
    const newest = Math.max(...clusters.map(({ turn }) => turn));
    const found: Service[] = [];
    for (const { turn, service } of clusters) {
      if (turn !== newest) continue;
      if (!found.some((other) => isSame(other, service))) found.push(service);
    }
    return found;
  }

  /** What a service lacks to be whole. */
  #missing(service: Service): string | undefined {
    const key = keyOf(service);
    for (const port of service.ports) {
      const name = resourceNameOf(key, port);
      const cluster = this.#clusters.get(name);
      if (cluster === undefined || !isSame(cluster.service, service)) {
        return `the cluster ${name}`;
      }
      if (!this.#listeners.has(name)) return `the listener ${name}`;
      if (!this.#assignments.has(cluster.assignment)) {
        return `the endpoints of ${name}`;
      }
    }
    return undefined;
  }

  #wholeOf(service: Service, before: WholeService | undefined): WholeService {
    const key = keyOf(service);
    const lists = service.ports.map((port) => {
      const { assignment } = this.#clusters.get(resourceNameOf(key, port))!;
      return this.#assignments.get(assignment)!;
    });
    const endpoints = inOneOrder(lists);
    const isSameService = before !== undefined &&
      isSame(before.service, service);
    if (isSameService && isSame(before.endpoints, endpoints)) return before;
    return { service: isSameService ? before.service : service, endpoints };
  }
}

/**
 * One list of the endpoints of several ports, in which each port's keep their
 * order. Each is placed with all of its ports, so it is in several: its turn is
 * when it is the first one left in all of them.
 */
function inOneOrder(
  lists: readonly (readonly Endpoint[])[],
): readonly Endpoint[] {
  const [first = [], ...others] = lists;
  if (others.length === 0) return first;
  const queues = lists.map((list) => ({
    left: list.map((endpoint) => ({ endpoint, key: JSON.stringify(endpoint) })),
    next: 0,
  }));
  const copies = new Map<string, number>();
  for (const { left } of queues) {
    for (const { key } of left) copies.set(key, (copies.get(key) ?? 0) + 1);
  }
  const order: Endpoint[] = [];
  const placed = new Set<string>();
  while (true) {
    const heads = queues.flatMap(({ left, next }) => left[next] ?? []);
    // Lists that were placed apart from each other may contradict: any order will
    // do until they agree.
    const head = heads.find(({ key }) =>
      heads.filter((other) =>
        other.key === key
      ).length === copies.get(key)
    ) ?? heads[0];
    if (head === undefined) return order;
    let left = copies.get(head.key)!;
    for (const queue of queues) {
      if (queue.left[queue.next]?.key !== head.key) continue;
      queue.next++;
      left--;
    }
    copies.set(head.key, left);
    if (!placed.has(head.key)) order.push(head.endpoint);
    placed.add(head.key);
  }
}

function addTo(
  sets: Map<string, Set<string>>,
  key: string,
  value: string,
): void {
  const set = sets.get(key);
  if (set === undefined) sets.set(key, new Set([value]));
  else set.add(value);
}

function removeFrom(
  sets: Map<string, Set<string>>,
  key: string,
  value: string,
): void {
  const set = sets.get(key);
  if (set?.delete(value) && set.size === 0) sets.delete(key);
}
