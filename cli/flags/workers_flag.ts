/**
 * `--workers`: how many processes of a program share its ports and its work.
 *
 * @module
 */

import { WORKERS_MAX } from "../../admin/ask/worker_sockets.ts";
import { type Flag, FlagValueError, parsedFlag } from "./flag.ts";
import { parseWholeNumber } from "./go_values.ts";

/** The flag; its value is at least 1. */
export const WORKERS_FLAG: { readonly workers: Flag<number> } = {
  "workers": parsedFlag(1, workerCount, {
    isCommon: true,
    group: "All cores",
    placeholder: "N|auto",
    help: "Processes that share the ports and the work; one uses one core. " +
      "auto: as many as there are cores that this program may use. A worker " +
      "that dies is replaced and costs its own connections.",
    defaultText: "1",
  }),
};

/**
 * The platform counts what affinity and the quotas of control groups leave, and
 * whole cores alone.
 *
 * @throws {FlagValueError}
 */
export function workerCount(
  text: string,
  cores: number = navigator.hardwareConcurrency,
): number {
  if (text === "auto") return Math.min(Math.max(cores, 1), WORKERS_MAX);
  const count = parseWholeNumber(text);
  if (count !== undefined && count >= 1 && count <= WORKERS_MAX) return count;
  throw new FlagValueError(
    `wanted a whole number from 1 to ${WORKERS_MAX}, or auto`,
  );
}
