/**
 * Metrics of the service proxy, `tunnel proxy`, beside nginx and HAProxy.
 *
 * @module
 */

import type { Metric } from "../metric.ts";
import { DATAGRAM_METRICS } from "./datagrams.ts";
import { DEAD_ENDPOINT_METRICS } from "./dead_endpoint.ts";
import { EVICTION_METRICS } from "./eviction.ts";
import { PROXY_LOADS } from "./loads.ts";
import { MANY_SERVICES_METRICS } from "./many_services.ts";

export const PROXY_METRICS: Readonly<Record<string, Metric>> = {
  ...PROXY_LOADS,
  ...DEAD_ENDPOINT_METRICS,
  ...DATAGRAM_METRICS,
  ...EVICTION_METRICS,
  ...MANY_SERVICES_METRICS,
};
