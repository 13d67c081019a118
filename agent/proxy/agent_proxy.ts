/**
 * The service proxy of an agent: services out of a file, on loopback.
 *
 * @module
 */

import { FileSource } from "../../catalog/sources/file.ts";
import type { Log } from "../../host/process/log.ts";
import type { MetricRegistry } from "../../host/process/metrics.ts";
import { systemTimers } from "../../host/process/system_timers.ts";
import { PROXY_DEFAULTS } from "./defaults.ts";
import { ServiceProxy } from "./service_proxy.ts";

/** @param configFile Of services; read again whenever it changes. */
export function openAgentProxy(
  configFile: string,
  tools: { readonly log: Log; readonly metrics: MetricRegistry },
): ServiceProxy {
  const source = new FileSource({ path: configFile, timers: systemTimers });
  return new ServiceProxy({ ...PROXY_DEFAULTS, sources: [source] }, tools);
}
