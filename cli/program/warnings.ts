/**
 * A log for commands whose output is not a log: what needs attention, on
 * standard error.
 *
 * @module
 */

import { type Log, openLog } from "../../platform/log/log.ts";

/** @param command Such as `dial`. */
export function dialWarnings(command: string): Log {
  return openLog(command, { format: "text", level: 0 });
}
