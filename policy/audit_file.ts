/**
 * The files of an audit log: opened to append, for their owner only, put aside
 * when they are full.
 *
 * @module
 */

import type { Code } from "../proto/codes/codes.ts";
import { codeOf, messageOf } from "../platform/errors/error_code.ts";
import { ifThere } from "../platform/files/file_error.ts";

/** A path at which no audit log can be. The message is one sentence. */
export class AuditLogError extends Error {
  override readonly name = "AuditLogError";
  readonly tunnelCode: Code = "TUN905";
}

/** A file that is open. */
export interface AuditFile {
  /** How long it was when it was opened. */
  readonly bytes: number;
  /** Appends all of `bytes`, or throws with some of them written. */
  write(bytes: Uint8Array): Promise<void>;
  /** Cuts the file off after `bytes`. */
  cut(bytes: number): Promise<void>;
  close(): void;
}

/** What an audit log needs of a machine. */
export interface AuditFiles {
  /** @throws {AuditLogError} When `path` can never work. */
  check(path: string): void;
  open(path: string): Promise<AuditFile>;
  /** `path` becomes `path.1`, that `path.2` …; the last one is removed. */
  putAside(path: string, filesMax: number): Promise<void>;
}

/** Passing troubles: no reason not to start. */
const PASSING: ReadonlySet<string> = new Set([
  "ENOSPC",
  "EDQUOT",
  "EIO",
  "EMFILE",
  "ENFILE",
  "ESTALE",
]);

const APPEND: Deno.OpenOptions = { append: true, create: true, mode: 0o600 };

/**
 * The machine's.
 *
 * @param flag Which names the path, for sentences.
 */
export function systemAuditFiles(flag = "--audit-log"): AuditFiles {
  return {
    check(path) {
      // Looked at before it is opened: to open a pipe is to wait for a reader.
      const there = lookedAt(path);
      if (there !== undefined) checkOwn(path, there, flag);
      try {
        Deno.openSync(path, APPEND).close();
      } catch (error) {
        if (!PASSING.has(codeOf(error))) throw unusable(path, error, flag);
      }
    },

    async open(path) {
      const before = lookedAt(path);
      if (before !== undefined) checkOwn(path, before, flag);
      const file = await Deno.open(path, { ...APPEND, read: true });
      try {
        const opened = await file.stat();
        checkSame(path, opened, flag);
        const { size } = opened;
        const isCut = size > 0 && !await endsWithLine(file, size);
        // A line that a crash has cut must not take the next one along.
        if (isCut) await writeAll(file, Uint8Array.of(NEWLINE));
        return new SystemAuditFile(file, size + (isCut ? 1 : 0));
      } catch (error) {
        file.close();
        throw error;
      }
    },

    async putAside(path, filesMax) {
      if (filesMax === 1) return await Deno.remove(path);
      for (let number = filesMax - 1; number > 0; number--) {
        const from = number === 1 ? path : `${path}.${number - 1}`;
        // There are fewer as long as the log is young.
        await ifThere(Deno.rename(from, `${path}.${number}`));
      }
    },
  };
}

const NEWLINE = 0x0a;

class SystemAuditFile implements AuditFile {
  constructor(private readonly file: Deno.FsFile, readonly bytes: number) {}

  write(bytes: Uint8Array): Promise<void> {
    return writeAll(this.file, bytes);
  }

  async cut(bytes: number): Promise<void> {
    const { size } = await this.file.stat();
    if (size > bytes) await this.file.truncate(bytes);
  }

  close(): void {
    this.file.close();
  }
}

async function writeAll(file: Deno.FsFile, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    at += await file.write(bytes.subarray(at));
  }
}

async function endsWithLine(file: Deno.FsFile, size: number): Promise<boolean> {
  await file.seek(size - 1, Deno.SeekMode.Start);
  const last = new Uint8Array(1);
  await file.read(last);
  return last[0] === NEWLINE;
}

/** Bits that let a group or everybody write. */
const OTHERS_WRITE = 0o022;

/**
 * Refuses an existing file that other users can write: its lines could be
 * forged, or new lines could go where another user wants them.
 *
 * @throws {AuditLogError}
 */
function checkOwn(path: string, seen: Deno.FileInfo, flag: string): void {
  const refuse = (why: string) => {
    throw new AuditLogError(`Cannot use ${flag} ${path}: ${why}`);
  };
  if (seen.isSymlink) {
    refuse(
      "it is a symbolic link, and who may change the link chooses what is " +
        "written to; give the path that it leads to",
    );
  }
  if (!seen.isFile) {
    refuse(
      "it is no plain file; give the path of a file, which is made when it " +
        "is missing",
    );
  }
  const us = Deno.uid();
  if (seen.uid !== null && us !== null && seen.uid !== us && seen.uid !== 0) {
    refuse(
      `it belongs to user ${seen.uid}, and this is user ${us}; look who made ` +
        "it, then change its owner or move it away",
    );
  }
  if (((seen.mode ?? 0) & OTHERS_WRITE) !== 0) {
    const mode = (seen.mode! & 0o777).toString(8).padStart(4, "0");
    refuse(
      `its mode is ${mode}, so others may change it; look who did, then ` +
        `chmod 0600 ${path}`,
    );
  }
}

/** Refuses a file that was put there between the look and the opening. */
function checkSame(
  path: string,
  opened: Deno.FileInfo,
  flag: string,
): void {
  const there = lookedAt(path);
  if (there?.ino === opened.ino && there.dev === opened.dev) {
    return checkOwn(path, there, flag);
  }
  throw new AuditLogError(
    `Cannot use ${flag} ${path}: it is being replaced while it is opened`,
  );
}

/** A symbolic link itself, and not its target. */
function lookedAt(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.lstatSync(path);
  } catch {
    // There is none yet, or opening it will report the error.
    return undefined;
  }
}

function unusable(path: string, error: unknown, flag: string): AuditLogError {
  const why = messageOf(error);
  return new AuditLogError(
    `Cannot use ${flag} ${path}: ${why}; give the path of a file in a ` +
      "folder that exists and may be written",
  );
}
