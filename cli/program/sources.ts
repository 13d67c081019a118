/**
 * The sources of services that a command's flags name: made, and files that a
 * person names read once before anything is served, so that a typo ends the
 * program in place of serving nothing.
 *
 * @module
 */

import { tunnelCodeOf } from "../../proto/codes/coded.ts";
import {
  type Source,
  SourceUnusableError,
} from "../../services/catalog/model/source.ts";
import {
  type SourceConfig,
  sourcesOf,
  type SourceTools,
} from "../../services/catalog/sources_of.ts";
import { EtcdConfigError } from "../../neighbours/etcd/errors.ts";
import { KubernetesConfigError } from "../../neighbours/kubernetes/errors.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { UsageError } from "../flags/usage_error.ts";
import { CommandFailure, ExitCode } from "./exit_codes.ts";

/**
 * Makes them. What is wrong with the configuration of one is wrong with the
 * command line.
 *
 * @throws {UsageError} One line.
 */
export function openSources(
  configs: readonly SourceConfig[],
  tools: Pick<SourceTools, "log" | "copies">,
): readonly Source[] {
  try {
    const { random } = Math;
    return sourcesOf(configs, { ...tools, timers: systemTimers, random });
  } catch (error) {
    const isConfig = error instanceof EtcdConfigError ||
      error instanceof KubernetesConfigError;
    if (!isConfig) throw error;
    throw new UsageError(error.message, tunnelCodeOf(error));
  }
}

/**
 * Reads files.
 *
 * @throws {CommandFailure} For the first that cannot be used.
 */
export async function readFirst(sources: readonly Source[]): Promise<void> {
  for (const source of sources) {
    try {
      await source.prepare?.();
    } catch (error) {
      if (!(error instanceof SourceUnusableError)) throw error;
      throw new CommandFailure(ExitCode.FAILURE, error.message, error);
    }
  }
}
