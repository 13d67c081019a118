/**
 * What an agent counts about servers' leases: Konnectivity's families, with
 * their help texts letter by letter.
 *
 * @module
 */

import type { RequestOptions } from "../../neighbours/kubernetes/client.ts";
import { KubernetesError } from "../../neighbours/kubernetes/errors.ts";
import type { ListWatchClient } from "../../neighbours/kubernetes/list_watch.ts";
import type { MetricRegistry } from "../../platform/metrics/metrics.ts";
import type { Clock } from "../../proto/sync/clock.ts";

const UPSTREAM = "konnectivity_network_proxy_agent_";

/** Upstream's buckets, in seconds. */
const LATENCY_BOUNDS = [.005, .025, .1, .5, 2.5, 10, 30];

/** The same client, whose lists and watches are counted. */
export function countedClient(
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
    get: <T>(path: string, options: RequestOptions) => {
      const beginMs = clock.now();
      return reporting(client.get<T>(path, options), (code, reason) => {
        listed(code, reason);
        seconds.with(`${code}`).observe((clock.now() - beginMs) / 1000);
      });
    },
    stream: (path, options) => reporting(client.stream(path, options), watched),
  };
}

async function reporting<T>(
  call: Promise<T>,
  report: (code: number, reason: string) => void,
): Promise<T> {
  try {
    const result = await call;
    report(200, "");
    return result;
  } catch (error) {
    if (error instanceof KubernetesError) report(error.code, error.reason);
    throw error;
  }
}
