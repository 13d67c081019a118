/**
 * Which version runs here, as a metric: a fleet's versions can be counted.
 *
 * @module
 */

import type { MetricRegistry } from "../metrics/metrics.ts";
import { VERSION } from "./version.ts";

/** Adds `tunnel_build_info`. */
export function registerBuildInfo(registry: MetricRegistry): void {
  const { deno, v8 } = Deno.version;
  const { os, arch } = Deno.build;
  registry.computedLabelled(
    "gauge",
    "tunnel_build_info",
    "1, with the version of this program and of what it runs on.",
    ["version", "deno", "v8", "os", "arch"],
    () => [[[VERSION, deno, v8, os, arch], 1]],
  );
}
