/**
 * Whether an audit log is complete, as metrics.
 *
 * @module
 */

import type { MetricRegistry } from "../platform/metrics/metrics.ts";
import type { AuditLog } from "./audit_log.ts";

/** @param prefix In front of the names, such as `tunnel_server_`. */
export function watchAuditLog(
  registry: MetricRegistry,
  prefix: string,
  audit: AuditLog,
): void {
  registry.computed(
    "counter",
    `${prefix}audit_lines_total`,
    "Lines written to the audit log.",
    () => audit.written,
  );
  registry.computed(
    "counter",
    `${prefix}audit_dropped_lines_total`,
    "Lines that are missing in the audit log: it could not be written.",
    () => audit.dropped,
  );
}
