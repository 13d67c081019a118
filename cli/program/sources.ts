/**
 * The sources of services that a command's flags name: made, and files that a
 * person names read once before anything is served, so that a typo ends the
 * program in place of serving nothing.
 *
 * @module
 */

import type { Source } from "../../services/catalog/model/source.ts";
import {
  type SourceConfig,
  sourcesOf,
  type SourceTools,
} from "../../services/catalog/sources_of.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { orMistake } from "../flags/usage_error.ts";
import { NeighbourConfigError } from "../../neighbours/tls_files.ts";

/**
 * Makes them.
 *
 * @throws {UsageError} One line.
 */
export function openSources(
  configs: readonly SourceConfig[],
  tools: Pick<SourceTools, "log" | "copies">,
): readonly Source[] {
  const { random } = Math;
  return refusingConfig(() =>
    sourcesOf(configs, { ...tools, timers: systemTimers, random })
  );
}

/** Does what may find fault with how etcd or Kubernetes is to be reached. */
export function refusingConfig<Result>(act: () => Result): Result {
  return orMistake([NeighbourConfigError], act);
}

/** Reads files. @throws {SourceUnusableError} For the first that cannot be used. */
export async function readFirst(sources: readonly Source[]): Promise<void> {
  for (const source of sources) await source.prepare?.();
}
