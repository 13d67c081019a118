/**
 * What the kubelet front end counts: requests by what they are for and how they
 * were answered. Neither comes from a caller's text, so labels stay few.
 *
 * @module
 */

import type { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { SERVER_PREFIX } from "../metrics/metric_families.ts";

/** First parts of kubelets' paths (its `server.go`); all others are `other`. */
const KINDS: ReadonlySet<string> = new Set([
  ...["attach", "checkpoint", "configz", "containerLogs", "debug", "exec"],
  ...["healthz", "logs", "metrics", "pods", "portForward", "run"],
  ...["runningpods", "stats"],
]);

/** What a request is for, as one of few words. */
export function requestKindOf(path: string): string {
  const first = path.split("/", 2)[1] ?? "";
  return KINDS.has(first) ? first : "other";
}

/** See the module description. */
export class KubeletMetrics {
  readonly #requests;
  readonly #inFlight;

  constructor(registry: MetricRegistry) {
    this.#requests = registry.labelled(
      "counter",
      `${SERVER_PREFIX}kubelet_requests_total`,
      "Requests to kubelets that are over, by what they are for and the first " +
        "digit of the status; none when the caller left before there was one.",
      ["kind", "status"],
    );
    this.#inFlight = registry.labelled(
      "gauge",
      `${SERVER_PREFIX}kubelet_requests_in_flight`,
      "Requests to kubelets under way, by what they are for.",
      ["kind"],
    );
  }

  began(path: string): void {
    this.#inFlight.with(requestKindOf(path)).add();
  }

  /** @param status 0: there was none. */
  ended(path: string, status: number): void {
    const kind = requestKindOf(path);
    this.#inFlight.with(kind).add(-1);
    const text = status === 0 ? "none" : `${Math.floor(status / 100)}xx`;
    this.#requests.with(kind, text).add();
  }
}
