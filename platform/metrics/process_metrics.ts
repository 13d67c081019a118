/**
 * Metrics of the process itself, under the names every Prometheus client
 * library uses.
 *
 * @module
 */

import process from "node:process";
import { loopLagMs } from "../time/loop_lag.ts";
import type { MetricRegistry } from "./metrics.ts";

/** Adds the `process_*` metrics, read at each scrape. */
export function registerProcessMetrics(registry: MetricRegistry): void {
  registry.computed(
    "counter",
    "process_cpu_seconds_total",
    "Total user and system CPU time spent in seconds.",
    cpuSeconds,
  );
  registry.computed(
    "gauge",
    "process_resident_memory_bytes",
    "Resident memory size in bytes.",
    () => Deno.memoryUsage().rss,
  );
  registry.computed(
    "gauge",
    "process_start_time_seconds",
    "Start time of the process since unix epoch in seconds.",
    () => Math.round(performance.timeOrigin) / 1000,
  );
}

/** Adds metrics of bytes that wait for slow readers. @param prefix Of names. */
export function watchBudget(
  registry: MetricRegistry,
  prefix: string,
  budget: { readonly bytes: number; readonly resets: number },
): void {
  registry.computed(
    "gauge",
    `${prefix}waiting_bytes`,
    "Bytes received and not taken yet, of all connections.",
    () => budget.bytes,
  );
  registry.computed(
    "counter",
    `${prefix}budget_resets_total`,
    "Connections reset because too much waited in this process.",
    () => budget.resets,
  );
}

/** User and system time since the start. */
export function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** For programs that watch for lapses: those notice late timers. */
export function registerLoopLag(registry: MetricRegistry): void {
  registry.computed(
    "gauge",
    "process_event_loop_lag_seconds",
    "The longest that a timer came late within the last one to two minutes.",
    () => loopLagMs() / 1_000,
  );
}

/** Adds `tunnel_build_info`, by which the versions of a fleet are counted. */
export function registerBuildInfo(
  registry: MetricRegistry,
  version: string,
): void {
  const { deno, v8 } = Deno.version;
  const { os, arch } = Deno.build;
  registry.computedLabelled(
    "gauge",
    "tunnel_build_info",
    "1, with the version of this program and of what it runs on.",
    ["version", "deno", "v8", "os", "arch"],
    () => [[[version, deno, v8, os, arch], 1]],
  );
}
