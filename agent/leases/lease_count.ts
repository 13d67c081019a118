/**
 * Follows servers' leases and says how many servers there are. Joins the parts
 * of this folder.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import { connectKubernetes } from "../../neighbours/kubernetes/connect.ts";
import { ListWatch } from "../../neighbours/kubernetes/list_watch.ts";
import type { Lease } from "../../neighbours/kubernetes/objects.ts";
import { LEASES, pathOf } from "../../neighbours/kubernetes/paths.ts";
import type { Log } from "../../platform/log/log.ts";
import type { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { countedClient } from "./lease_metrics.ts";
import type { LeaseCountOptions } from "../options.ts";
import { ServerLeases } from "./server_leases.ts";

/** See the module description. */
export interface LeaseCount {
  /** @param reported What the server that answered last says. */
  servers(reported: number): number;
  stop(): void;
}

/**
 * Starts to follow. While the API server cannot be asked, what was known last
 * counts; before anything is known, what servers say.
 *
 * @param onMore There may be more servers than before.
 * @throws {KubernetesConfigError}
 */
export function followLeases(
  options: LeaseCountOptions,
  log: Log,
  metrics: MetricRegistry,
  onMore: () => void,
): LeaseCount {
  const client = connectKubernetes(options, systemTimers);
  const leases = new ServerLeases({
    clock: systemTimers,
    wallClock: Date.now,
    onMore,
  });
  let lastGood: number | undefined;
  const following = new ListWatch<Lease>({
    client: countedClient(client, metrics, systemTimers),
    path: pathOf(LEASES, { namespace: options.namespace }),
    query: { labelSelector: options.labelSelector },
    timers: systemTimers,
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
