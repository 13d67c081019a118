/**
 * Follows servers' leases, counts the calls that this takes, and says how many
 * servers there are.
 *
 * @module
 */

import type { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import type { RequestOptions } from "../../neighbours/kubernetes/client.ts";
import { connectKubernetes } from "../../neighbours/kubernetes/connect.ts";
import { reporting } from "../../neighbours/kubernetes/errors.ts";
import {
  ListWatch,
  type ListWatchClient,
} from "../../neighbours/kubernetes/list_watch.ts";
import type { Lease } from "../../neighbours/kubernetes/objects.ts";
import {
  leaseEndMs,
  LEASES,
  objectPathOf,
} from "../../neighbours/kubernetes/paths.ts";
import type { CountingTools } from "../../platform/program/tools.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import type { LeaseCountOptions } from "../options.ts";
import {
  type ObjectChange,
  objectKeyOf,
} from "../../neighbours/kubernetes/object_copy.ts";

export interface LeaseCount {
  /** @param reported What the server that answered last says. */
  servers(reported: number): number;
  stop(): void;
}

/**
 * Starts to follow. While the API server cannot be asked, the last known count
 * is used, and before the first answer the servers' own.
 *
 * @param onChanged The number of servers may have changed.
 * @throws {NeighbourConfigError}
 */
export function followLeases(
  options: LeaseCountOptions,
  { log, metrics, timers }: CountingTools,
  onChanged: (areMore: boolean) => void,
): LeaseCount {
  const client = connectKubernetes(options, timers);
  const leases = new ServerLeases({
    clock: timers,
    wallClock: Date.now,
    onChanged,
  });
  let lastGood: number | undefined;
  const following = new ListWatch<Lease>({
    client: countedClient(client, metrics, timers),
    path: objectPathOf(LEASES, { namespace: options.namespace }),
    query: { labelSelector: options.labelSelector },
    timers,
    random: Math.random,
    onChanges: (changes) => leases.changed(changes),
    onSynced: () => leases.synced(),
    onProblem: (error, retryMs) =>
      log.event(
        `cannot follow the servers' leases: ${error.message}; trying again ` +
          `in ${Math.round(retryMs)} ms`,
        {},
        error.message,
      ),
  });
  following.start();
  return {
    servers: (reported) => {
      if (!following.isStale || lastGood === undefined) lastGood = leases.count;
      if (lastGood === undefined) return reported;
      return options.source === "max" ? Math.max(lastGood, reported) : lastGood;
    },
    stop: () => {
      client[Symbol.dispose]();
      unawaited("task", following.stop());
    },
  };
}

const UPSTREAM = "konnectivity_network_proxy_agent_";

/** Upstream's buckets, in seconds. */
const LATENCY_BOUNDS = [.005, .025, .1, .5, 2.5, 10, 30];

/**
 * The same client, whose lists and watches are counted: Konnectivity's families,
 * with their help texts letter by letter.
 */
function countedClient(
  client: ListWatchClient,
  registry: MetricRegistry,
  clock: Clock,
): ListWatchClient {
  const calls = (kind: "list" | "watch", name: string) => {
    const total = registry.labelled(
      "counter",
      `${UPSTREAM}${name}_total`,
      `Count of server lease ${kind} calls made by the agent to the k8s apiserver, ` +
        "labeled by HTTP response code and reason",
      ["http_response_code", "reason"],
    );
    return (code: number, reason: string) =>
      total.with(`${code}`, reason).add();
  };
  const listed = calls("list", "lease_lists");
  const watched = calls("watch", "lease_watches");
  const seconds = registry.labelledHistogram(
    `${UPSTREAM}lease_list_latency_seconds`,
    "Latency of server lease listing in seconds",
    "http_response_code",
    LATENCY_BOUNDS,
  );
  return {
    get: <T>(path: string, options: RequestOptions) =>
      reporting<T>(clock, (code, reason, durationMs) => {
        listed(code, reason);
        seconds.with(`${code}`).observe(durationMs / 1000);
      }, client.get(path, options)),
    stream: (path, options) =>
      reporting(clock, watched, client.stream(path, options)),
  };
}

interface ServerLeasesOptions {
  readonly clock: Clock;
  /** Milliseconds since 1970: all there is to judge a lease by at first. */
  readonly wallClock: () => number;
  /** There may be more servers than before, or fewer. */
  readonly onChanged: (areMore: boolean) => void;
}

/** Facts about one lease. */
interface Known {
  readonly renewed: string;
  readonly endMs: number;
}

/**
 * Counts servers by their leases, as Konnectivity's agents do.
 *
 * A lease is valid for its duration after each renewal. A renewal counts from
 * the moment at which it was seen here, not from the server's time stamp: the
 * clock of a node may be wrong by years, and every lease would seem expired.
 */
export class ServerLeases {
  readonly #known = new Map<string, Known>();
  #isSynced = false;
  /** The last logged number of them. */
  #told = 1;

  constructor(private readonly options: ServerLeasesOptions) {}

  /**
   * Servers that hold a lease, at least one.
   *
   * @returns `undefined` until all leases were seen once.
   */
  get count(): number | undefined {
    if (!this.#isSynced) return undefined;
    const now = this.options.clock.now();
    let count = 0;
    for (const { endMs } of this.#known.values()) if (endMs > now) count++;
    return Math.max(1, count);
  }

  /** For `ListWatch.onChanges`. */
  changed(changes: readonly ObjectChange<Lease>[]): void {
    for (const change of changes) this.#note(change);
    this.#tell();
  }

  /** For `ListWatch.onSynced`. */
  synced(): void {
    if (this.#isSynced) return;
    this.#isSynced = true;
    this.#tell();
  }

  #tell(): void {
    const { count } = this;
    if (count === undefined || count === this.#told) return;
    const areMore = count > this.#told;
    this.#told = count;
    this.options.onChanged(areMore);
  }

  #note(change: ObjectChange<Lease>): void {
    const { object } = change;
    const key = objectKeyOf(object);
    if (change.type === "removed") return void this.#known.delete(key);
    const { clock, wallClock } = this.options;
    const renewed = object.spec?.renewTime ?? object.spec?.acquireTime ?? "";
    const known = this.#known.get(key);
    if (known?.renewed === renewed) return;
    const wallEndMs = leaseEndMs(object);
    if (wallEndMs === undefined) return void this.#known.delete(key);
    const leftMs = known === undefined
      ? wallEndMs - wallClock()
      : object.spec!.leaseDurationSeconds! * 1000;
    const endMs = clock.now() + leftMs;
    this.#known.set(key, { renewed, endMs });
  }
}
