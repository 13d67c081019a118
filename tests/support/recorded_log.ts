/**
 * A log that keeps what it is told.
 *
 * @module
 */

import type { Log } from "../../host/log.ts";

/** Lines as `level: message`. */
export function recordedLog(): { readonly log: Log; readonly lines: string[] } {
  const lines: string[] = [];
  const at = (level: string) => (message: string) =>
    void lines.push(`${level}: ${message}`);
  const log: Log = {
    error: at("error"),
    warn: at("warn"),
    info: at("info"),
    event: at("event"),
    detail: at("detail"),
    wantsPackets: false,
    packet: at("packet"),
  };
  return { log, lines };
}
