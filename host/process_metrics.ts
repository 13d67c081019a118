/**
 * What a process tells about itself, under the names every Prometheus client
 * library uses.
 *
 * @module
 */

import process from "node:process";
import type { MetricsRegistry } from "./metrics.ts";

/** Adds the `process_*` metrics, read when they are asked for. */
export function registerProcessMetrics(registry: MetricsRegistry): void {
  const cpu = registry.counter({
    name: "process_cpu_seconds_total",
    help: "Total user and system CPU time spent in seconds.",
  });
  const memory = registry.gauge({
    name: "process_resident_memory_bytes",
    help: "Resident memory size in bytes.",
  });
  const descriptors = registry.gauge({
    name: "process_open_fds",
    help: "Number of open file descriptors.",
    lazy: true,
  });
  registry.gauge({
    name: "process_start_time_seconds",
    help: "Start time of the process since unix epoch in seconds.",
  }).set(Math.round(performance.timeOrigin) / 1000);
  let countedSeconds = 0;
  registry.collector(() => {
    const { user, system } = process.cpuUsage();
    const seconds = (user + system) / 1e6;
    cpu.add(seconds - countedSeconds);
    countedSeconds = seconds;
    memory.set(Deno.memoryUsage().rss);
    const open = countDescriptors();
    if (open !== undefined) descriptors.set(open);
  });
}

/** `undefined` where the system does not tell. */
function countDescriptors(): number | undefined {
  try {
    return [...Deno.readDirSync("/proc/self/fd")].length;
  } catch {
    return undefined; // No Linux, no permission, or no descriptor left.
  }
}
