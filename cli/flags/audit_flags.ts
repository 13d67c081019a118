/**
 * The flags of the audit log, which server and agent have alike.
 *
 * @module
 */

import type { AuditLogOptions } from "../../policy/audit_log.ts";
import { bytesFlag, countFlag, fileFlag } from "./flag.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

const AUDIT = "Audit log (who was let where)";

/** See the module description. */
export const AUDIT_FLAGS = {
  "audit-log": fileFlag({
    group: AUDIT,
    help: "Write a line of JSON for each decision about a dial and each end " +
      "of a connection.",
  }),
  "audit-log-max-size": bytesFlag(100 * MIB, 64 * KIB, 1024 * 1024 * MIB, {
    group: AUDIT,
    help: "Put the file aside at this size.",
  }),
  "audit-log-max-files": countFlag(5, 1, 1000, {
    group: AUDIT,
    help: "Files kept in all; the oldest is removed.",
  }),
} as const;

/** @returns `undefined` when no audit log is wanted. */
export function auditOptions(
  flags: {
    readonly "audit-log": string;
    readonly "audit-log-max-size": number;
    readonly "audit-log-max-files": number;
  },
): AuditLogOptions | undefined {
  const path = flags["audit-log"];
  if (path === "") return undefined;
  return {
    path,
    bytesMax: flags["audit-log-max-size"],
    filesMax: flags["audit-log-max-files"],
  };
}
