/**
 * Everything that can be measured, by name, in the order of a whole run.
 *
 * @module
 */

import { LINE_METRICS } from "./lines/line_metrics.ts";
import { FORWARD_METRICS } from "./forward_metrics.ts";
import type { Metric } from "./metric.ts";
import { TUNNEL_METRICS } from "./tunnel_metrics.ts";
import { PROXY_LOADS } from "./proxy_loads.ts";
import { WORKER_METRICS } from "./worker_metrics.ts";
import { XDS_METRICS } from "./xds_metrics.ts";

export const METRICS: Readonly<Record<string, Metric>> = {
  ...TUNNEL_METRICS,
  ...FORWARD_METRICS,
  ...LINE_METRICS,
  ...PROXY_LOADS,
  ...WORKER_METRICS,
  ...XDS_METRICS,
};
