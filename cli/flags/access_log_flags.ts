/**
 * Flags about the access log and the audit log, which programs have alike.
 *
 * @module
 */

import { ACCESS_FORMATS } from "../../policy/access_format.ts";
import type { AuditLogOptions } from "../../policy/audit_log.ts";
import {
  type AccessLogOptions,
  standardStreams,
} from "../../policy/access_log.ts";
import {
  common,
  type Flag,
  flag,
  FlagValueError,
  type FlagValues,
  inGroup,
} from "./flag.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

const MAX_SIZE_FLAG = flag.bytes(100 * MIB, 64 * KIB, 1024 * 1024 * MIB, {
  help: "Rotate the file at this size.",
});

const MAX_FILES_FLAG = flag.count(5, 1, 1000, {
  help: "Number of files to keep; the oldest is removed.",
});

/** The file of decisions. */
export const AUDIT_FLAGS = inGroup("Audit log", {
  "audit-log": common(flag.file({
    help: "Write a line of JSON for each decision about a dial and for each " +
      "end of a connection.",
  })),
  "audit-log-max-size": MAX_SIZE_FLAG,
  "audit-log-max-files": MAX_FILES_FLAG,
});

/** A line for each connection. */
export const ACCESS_LOG_FLAGS = inGroup("Access log", {
  "access-log": common(flag.word("FILE|-|stderr", {
    help: "Write a line for each connection that has ended or failed; - is " +
      "standard output.",
  })),
  "access-log-format": flag.choice(ACCESS_FORMATS, "text", {
    help: "Form of a line: key=value text, JSON, or as NCSA and Apache write " +
      "it.",
  }),
  "access-log-sample": sampleFlag(),
  "access-log-max-size": MAX_SIZE_FLAG,
  "access-log-max-files": MAX_FILES_FLAG,
});

function sampleFlag(): Flag<number> {
  return flag.parsed(1, (text) => {
    const part = partOf(text);
    if (part > 0 && part <= 1) return part;
    throw new FlagValueError("wanted a part such as 0.1 or 1/10, at most 1");
  }, {
    placeholder: "PART",
    defaultText: "1",
    help: "Write this part of the connections only, the same ones in all " +
      "programs; those that fail are always written.",
  });
}

/** NaN: it is none. */
function partOf(text: string): number {
  const match = /^(\d{1,9}(?:\.\d{1,9})?)(?:\/(\d{1,9}))?$/.exec(text);
  if (match === null) return NaN;
  return Number(match[1]) / Number(match[2] ?? 1);
}

/**
 * Several programs with one file get a file each, because two cannot rotate
 * one.
 */
type Worker = { readonly index: number } | undefined;

/** @returns `undefined` when no audit log is wanted. */
export function auditOptions(
  flags: FlagValues<typeof AUDIT_FLAGS>,
  worker?: Worker,
): AuditLogOptions | undefined {
  if (flags["audit-log"] === "") return undefined;
  return {
    path: ownPath(flags["audit-log"], worker),
    bytesMax: flags["audit-log-max-size"],
    filesMax: flags["audit-log-max-files"],
  };
}

/** @returns What options are to have of it: nothing when none is wanted. */
export function accessLog(
  flags: FlagValues<typeof ACCESS_LOG_FLAGS>,
  worker?: Worker,
): { readonly access?: AccessLogOptions } {
  const path = flags["access-log"];
  if (path === "") return {};
  const isStream = standardStreams(path) !== undefined;
  return {
    access: {
      file: {
        path: isStream ? path : ownPath(path, worker),
        bytesMax: flags["access-log-max-size"],
        filesMax: flags["access-log-max-files"],
      },
      format: flags["access-log-format"],
      sample: flags["access-log-sample"],
    },
  };
}

function ownPath(path: string, worker: Worker): string {
  const { index = 0 } = worker ?? {};
  return index === 0 ? path : `${path}.w${index}`;
}
