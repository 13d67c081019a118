/**
 * Make before break, the other way round: listeners and routes that name a
 * cluster wait until the client has that cluster. Envoy answers 503 for a route
 * to a cluster that is still warming, and the protocol leaves it to the server.
 *
 * Listeners and routes wait together, as they are in one view: what changes
 * meanwhile waits behind them, so a catalog with ever new services blocks no
 * client. Of resources only the clusters that they name are known here.
 *
 * @module
 */

import type { Resource } from "../../../proto/xds/resource.ts";
import { PairMemo } from "../../catalog/model/memo.ts";
import { type ByName, changedNames, type View } from "../view/view.ts";
import type { InterimRoutes } from "../generate/routes.ts";

/**
 * The longest wait, as long as for an answer: then a client that acknowledges no
 * clusters, or whose clusters do not become warm, receives the rest all the same.
 */
export const WARMING_WAIT_MS = 10_000;

/** The longest wait for clusters of interim routes, which are only a help. */
export const INTERIM_WAIT_MS = 3_000;

/** A client acknowledges clusters a moment before it knows them everywhere. */
export const INTERIM_SETTLE_MS = 100;

/** Clusters that status shows. */
export const SHOWN_CLUSTERS_MAX = 8;

/** A view and its number. */
export interface Counted {
  readonly view: View;
  readonly generation: number;
}

/** A view that waits for clusters. */
interface Waiting extends Counted {
  readonly sinceMs: number;
  /** The last is checked first; clusters that the client has are removed. */
  readonly clusters: string[];
  /** Whether interim routes name them, to which no request goes yet. */
  readonly isInterim: boolean;
  /** Since when the client has them all; Infinity before that. */
  readyMs: number;
  /** The latest view with all of them. */
  seenIn: View;
}

/** Listeners or routes that were sent before their clusters were acknowledged. */
export interface SentEarly {
  readonly atMs: number;
  readonly clusters: readonly string[];
}

/** What the client has acknowledged of clusters. */
export interface ClusterAcks {
  /** Whether requests to the cluster reach endpoints, as far as the client knows. */
  isUsable(cluster: string): boolean;
  /** Whether the client has fetched the cluster. */
  hasAcked(cluster: string): boolean;
  asksForRoute(name: string): boolean;
  /** See `ClientProfile`. */
  interimRoutesOf?(before: ByName, after: ByName): InterimRoutes | undefined;
}

/** See the module description; of one stream. */
export class Warming {
  #passed: Counted | undefined;
  #waiting: Waiting | undefined;
  #early: SentEarly | undefined;

  /**
   * The time at which waiting resources are sent without an acknowledgement;
   * Infinity when none waits.
   */
  get dueMs(): number {
    if (this.#waiting === undefined) return Infinity;
    return Math.min(giveUpMs(this.#waiting), this.settledMs);
  }

  /**
   * When the client is sure to know the clusters of interim routes, which takes
   * moments; else Infinity.
   */
  get settledMs(): number {
    const { readyMs = Infinity } = this.#waiting ?? {};
    return readyMs + INTERIM_SETTLE_MS;
  }

  /** The view that waits; not always the latest. */
  get waiting(): Counted | undefined {
    return this.#waiting;
  }

  /** Clusters that listeners and routes wait for. */
  get clusters(): readonly string[] {
    return shown(this.#waiting?.clusters ?? []);
  }

  /** The last wait that ended too late, unless one ended in time since. */
  get early(): SentEarly | undefined {
    return this.#early;
  }

  get #earlyMs(): number {
    return this.#early?.atMs ?? -Infinity;
  }

  /**
   * The view whose listeners and routes may be sent.
   *
   * @param latest The latest view.
   */
  pass(latest: Counted, client: ClusterAcks, nowMs: number): Counted {
    // The first view of a client, and what did not change, waits for nothing.
    this.#passed ??= latest;
    for (;;) {
      const sinceMs = this.#waiting?.sinceMs ?? nowMs;
      const waiting = isWhole(this.#waiting, latest)
        ? this.#waiting
        : this.#begin(latest, client, sinceMs);
      if (waiting === undefined) return this.#passed;
      if (!this.#isOver(waiting, client, nowMs)) {
        this.#waiting = waiting;
        return this.#passed;
      }
      this.#waiting = undefined;
      this.#passed = waiting;
    }
  }

  #begin(
    latest: Counted,
    client: ClusterAcks,
    sinceMs: number,
  ): Waiting | undefined {
    const passed = this.#passed!;
    if (passed.view === latest.view) {
      this.#passed = latest;
      this.#waiting = undefined;
      return undefined;
    }
    const { listener, route } = passed.view.resources;
    const { resources } = latest.view;
    const every = { ...latest, sinceMs, readyMs: Infinity };
    const announced = this.#announce(latest, client);
    if (announced.length > 0) {
      const seenIn = latest.view;
      return { ...every, clusters: announced, isInterim: true, seenIn };
    }
    const named = new Set([
      ...namedClusters.of(listener, resources.listener),
      ...namedClusters.of(route, resources.route),
    ]);
    const clusters = [...named].filter((name) => !client.isUsable(name));
    return { ...every, clusters, isInterim: false, seenIn: latest.view };
  }

  /**
   * Passes interim routes. @returns The clusters that they name for the first
   * time.
   */
  #announce(latest: Counted, client: ClusterAcks): string[] {
    const { view, generation } = this.#passed!;
    const { route } = view.resources;
    const { resources } = latest.view;
    const interim = client.interimRoutesOf?.(route, resources.route);
    if (interim === undefined) return [];
    const clusters = new Set<string>();
    for (const [name, more] of interim.clusters) {
      if (!client.asksForRoute(name)) continue;
      for (const cluster of more) {
        const isMissed = resources.cluster.has(cluster) &&
          !client.hasAcked(cluster);
        if (isMissed) clusters.add(cluster);
      }
    }
    if (clusters.size === 0) return [];
    const routes = { ...view.resources, route: interim.routes };
    // Requests still go to the clusters that they went to.
    this.#passed = { view: { resources: routes }, generation };
    return [...clusters];
  }

  #isOver(
    waiting: Waiting,
    client: ClusterAcks,
    nowMs: number,
  ): boolean {
    const { clusters, sinceMs, isInterim } = waiting;
    const has = (name: string) =>
      isInterim ? client.hasAcked(name) : client.isUsable(name);
    while (clusters.length > 0 && has(clusters.at(-1)!)) clusters.pop();
    const isWell = clusters.length === 0;
    if (isInterim && isWell) {
      waiting.readyMs = Math.min(waiting.readyMs, nowMs);
      return nowMs >= waiting.readyMs + INTERIM_SETTLE_MS;
    }
    if (!isWell && nowMs < giveUpMs(waiting)) return false;
    if (isInterim) return true;
    if (!isWell) {
      this.#early = { atMs: nowMs, clusters: shown(clusters) };
    } else if (this.#waiting !== undefined && sinceMs > this.#earlyMs) {
      this.#early = undefined;
    }
    return true;
  }
}

function giveUpMs({ sinceMs, isInterim }: Waiting): number {
  return sinceMs + (isInterim ? INTERIM_WAIT_MS : WARMING_WAIT_MS);
}

/** Whether the clusters may still come: else a later view replaces this one. */
function isWhole(
  waiting: Waiting | undefined,
  { view }: Counted,
): waiting is Waiting {
  if (waiting === undefined || waiting.seenIn === view) {
    return waiting !== undefined;
  }
  waiting.seenIn = view;
  const { cluster } = view.resources;
  return waiting.clusters.every((name) => cluster.has(name));
}

function shown(clusters: readonly string[]): readonly string[] {
  return clusters.slice(-SHOWN_CLUSTERS_MAX);
}

/** Clusters that changed listeners or routes lead to; all clients share it. */
const namedClusters = new PairMemo<ByName, ByName, readonly string[]>(
  (before, after) => {
    const names = new Set<string>();
    for (const name of changedNames(before, after)) {
      for (const cluster of clustersOf(after.get(name))) names.add(cluster);
    }
    return [...names];
  },
);

function clustersOf(resource: Resource | undefined): readonly string[] {
  return resource?.clusters ?? [];
}
