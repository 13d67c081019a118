/**
 * The files of an audit log: opened to append, for their owner only, put aside
 * when they are full.
 *
 * @module
 */

import { codeOf } from "../sockets/octet_socket.ts";

/** A path at which no audit log can be. The message is one sentence. */
export class AuditLogError extends Error {
  override readonly name = "AuditLogError";
}

/** A file that is open. */
export interface AuditFile {
  /** How long it was when it was opened. */
  readonly octets: number;
  /** Appends all of `octets`, or throws with some of them written. */
  write(octets: Uint8Array): Promise<void>;
  /** Cuts off what is behind `octets`. */
  cut(octets: number): Promise<void>;
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

/** The machine's. */
export const systemAuditFiles: AuditFiles = {
  check(path) {
    // Looked at before it is opened: to open a pipe is to wait for a reader.
    if (statOf(path)?.isFile === false) {
      throw new AuditLogError(
        `Cannot use --audit-log ${path}: it is no plain file; give the path ` +
          "of a file, which is made when it is missing",
      );
    }
    try {
      Deno.openSync(path, APPEND).close();
    } catch (error) {
      if (!PASSING.has(codeOf(error))) throw unusable(path, error);
    }
  },

  async open(path) {
    const file = await Deno.open(path, { ...APPEND, read: true });
    try {
      const { size } = await file.stat();
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
      try {
        await Deno.rename(from, `${path}.${number}`);
      } catch (error) {
        // There are fewer as long as the log is young.
        if (!(error instanceof Deno.errors.NotFound)) throw error;
      }
    }
  },
};

const NEWLINE = 0x0a;

class SystemAuditFile implements AuditFile {
  readonly #file: Deno.FsFile;

  constructor(file: Deno.FsFile, readonly octets: number) {
    this.#file = file;
  }

  write(octets: Uint8Array): Promise<void> {
    return writeAll(this.#file, octets);
  }

  async cut(octets: number): Promise<void> {
    const { size } = await this.#file.stat();
    if (size > octets) await this.#file.truncate(octets);
  }

  close(): void {
    this.#file.close();
  }
}

async function writeAll(file: Deno.FsFile, octets: Uint8Array): Promise<void> {
  for (let at = 0; at < octets.length;) {
    at += await file.write(octets.subarray(at));
  }
}

async function endsWithLine(file: Deno.FsFile, size: number): Promise<boolean> {
  await file.seek(size - 1, Deno.SeekMode.Start);
  const last = new Uint8Array(1);
  await file.read(last);
  return last[0] === NEWLINE;
}

function statOf(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.statSync(path);
  } catch {
    // There is none yet, or opening it will say what is wrong.
    return undefined;
  }
}

function unusable(path: string, error: unknown): AuditLogError {
  const why = error instanceof Error ? error.message : String(error);
  return new AuditLogError(
    `Cannot use --audit-log ${path}: ${why}; give the path of a file in a ` +
      "folder that exists and may be written",
  );
}
