/**
 * Everything that can be measured, by name, in the order of a whole run.
 *
 * @module
 */

import { LINE_METRICS } from "./lines/mod.ts";
import type { Metric } from "./metric.ts";
import { BULK_METRICS } from "./metrics/bulk.ts";
import { CONNECTION_METRICS } from "./metrics/connections.ts";
import { FORWARDED_METRICS } from "./metrics/forwarded.ts";
import { HANDSHAKE_METRICS } from "./metrics/handshakes.ts";
import { IDLE_METRICS } from "./metrics/idle.ts";
import { REQUEST_METRICS } from "./metrics/requests.ts";
import { PROXY_METRICS } from "./proxies/mod.ts";
import { STALLED_METRICS } from "./metrics/stalled.ts";
import { XDS_METRICS } from "./xds/mod.ts";

export const METRICS: Readonly<Record<string, Metric>> = {
  ...BULK_METRICS,
  ...REQUEST_METRICS,
  ...CONNECTION_METRICS,
  ...HANDSHAKE_METRICS,
  ...STALLED_METRICS,
  ...IDLE_METRICS,
  ...FORWARDED_METRICS,
  ...LINE_METRICS,
  ...PROXY_METRICS,
  ...XDS_METRICS,
};
