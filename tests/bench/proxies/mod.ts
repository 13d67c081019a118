/**
 * Metrics of the service proxy, `tunnel proxy`, beside nginx and HAProxy.
 *
 * @module
 */

import type { Metric } from "../metric.ts";
import { DEAD_ENDPOINT_METRICS } from "./dead_endpoint.ts";
import { PROXY_LOADS } from "./loads.ts";

export const PROXY_METRICS: Readonly<Record<string, Metric>> = {
  ...PROXY_LOADS,
  ...DEAD_ENDPOINT_METRICS,
};
