/**
 * The state of a state directory: complete, incomplete, or foreign; and its
 * creation, which starts again after an interruption.
 *
 * A new authority is made only in a missing or empty directory. A directory
 * that lost its authority is a fault that an operator must see, because a new
 * authority would lock out every node.
 *
 * @module
 */

import {
  finishedFiles,
  removeFile,
  removeUnfinished,
  replaceFile,
  syncDirectory,
} from "../../platform/files/atomic_file.ts";
import { systemProblem } from "../../platform/files/file_error.ts";
import {
  checkPrivate,
  PrivateFileError,
} from "../../platform/files/private_files.ts";
import type { Records } from "./store.ts";
import {
  damaged,
  needRecord,
  parseRecord,
  StoreAwayError,
  StoreError,
} from "./store_error.ts";

const FORMAT = { format: "tunnel-server-state", version: 1 } as const;

/** The format record's content, for either kind of state. */
export const FORMAT_TEXT: string = JSON.stringify(FORMAT) + "\n";

/**
 * @param key The record that names the format.
 * @param what Such as `directory`.
 * @param where For the sentence: the place with that format.
 * @throws {StoreError} When the record is missing, or not ours.
 */
export async function checkFormat(
  records: Records,
  key: string,
  what: string,
  where: string,
): Promise<void> {
  const text = await needRecord(records, key);
  const format = parseRecord(records, key, text) as
    | Partial<typeof FORMAT>
    | null;
  if (format?.format !== FORMAT.format) {
    throw damaged(records, key, `it names another kind of ${what}`);
  }
  if (format.version === FORMAT.version) return;
  throw new StoreError(
    `Cannot use ${where}: it has format ${String(format.version)}, wanted ` +
      `${FORMAT.version}; was it made by a newer tunnel? Use that one`,
  );
}

/**
 * Notices that a directory has lost the state that was seen in it: it was
 * removed, or is not mounted. What is written there then is in another place,
 * and in the way when it is back.
 */
export class StatePresence {
  #wasThere = false;

  constructor(private readonly root: string) {
    this.problemAtOnce();
  }

  /** Why it is away now, if it is. A file server that hangs stops nothing. */
  async problem(): Promise<string | undefined> {
    try {
      await Deno.stat(`${this.root}/format`);
      return this.#seen();
    } catch (error) {
      return this.#wordsFor(error);
    }
  }

  /** The same, for what just read there and does not wait. */
  problemAtOnce(): string | undefined {
    try {
      Deno.statSync(`${this.root}/format`);
      return this.#seen();
    } catch (error) {
      return this.#wordsFor(error);
    }
  }

  #seen(): undefined {
    this.#wasThere = true;
  }

  #wordsFor(error: unknown): string | undefined {
    if (!this.#wasThere) return undefined;
    return `${this.root}/format cannot be read: ${systemProblem(error)}`;
  }

  /** @throws {StoreAwayError} */
  async need(): Promise<void> {
    const why = await this.problem();
    if (why === undefined) return;
    throw new StoreAwayError(
      `Cannot reach the state directory, so nothing is changed: ${why}`,
    );
  }
}

/** There while the directory is being made, gone when it is complete. */
export const CREATING = "creating";
export const CREATING_TEXT =
  "This directory is being made. If this file stays, that " +
  "was interrupted before anything here was used; the next start begins again.\n";

/** What making a directory may leave behind when it is interrupted. */
const MADE: ReadonlySet<string> = new Set([
  CREATING,
  "ca",
  "tokens",
  "nodes",
  "lock",
  "server.pem",
]);

export const FOLDERS = ["ca", "tokens", "nodes"] as const;

type Content = "nothing" | "unfinished" | "complete" | "foreign";

export async function contentOf(root: string): Promise<Content> {
  const found = await names(root);
  if (found.length === 0) return "nothing";
  if (found.includes("format")) return "complete";
  const wasCreating = found.includes(CREATING) &&
    found.every((name) => MADE.has(name));
  if (!wasCreating) return "foreign";
  for (const folder of ["tokens", "nodes"]) {
    if ((await names(`${root}/${folder}`)).length > 0) return "foreign";
  }
  return "unfinished";
}

export async function names(folder: string): Promise<string[]> {
  try {
    const found = await finishedFiles(folder);
    // The file system's own, at the root of a volume.
    return found.filter((name) => name !== "lost+found");
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw unreadable(folder, error);
  }
}

export async function create(
  root: string,
  fill: () => Promise<void>,
): Promise<void> {
  // Leftovers of an interrupted run: keys that were never used.
  for (const name of MADE) {
    if (name === CREATING) continue;
    await removeFile(`${root}/${name}`, { recursive: true });
  }
  await removeUnfinished(root);
  for (const folder of FOLDERS) await makeFolder(`${root}/${folder}`);
  await fill();
  await syncDirectory(root);
  await replaceFile(`${root}/format`, FORMAT_TEXT);
}

export async function makeFolder(path: string): Promise<void> {
  try {
    await Deno.mkdir(path, { recursive: true, mode: 0o700 });
    await Deno.chmod(path, 0o700);
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** Opens a file for its lock, and writes `text` if it is new. */
export async function openForLock(
  path: string,
  text: string,
): Promise<Deno.FsFile> {
  try {
    const options = { read: true, write: true, create: true, mode: 0o600 };
    const file = await Deno.open(path, options);
    if (text !== "" && (await file.stat()).size === 0) {
      await file.write(new TextEncoder().encode(text));
    }
    return file;
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** @throws {StoreError} When others than the owner could do that. */
export async function checkOwner(
  path: string,
  others: "read" | "change",
): Promise<void> {
  try {
    await checkPrivate(path, others);
  } catch (error) {
    if (!(error instanceof PrivateFileError)) throw error;
    const { cause, message } = error;
    throw cause === undefined
      ? new StoreError(message)
      : unreadable(path, cause);
  }
}

export function unreadable(path: string, error: unknown): StoreError {
  const seen = systemProblem(error);
  const remedy = error instanceof Deno.errors.NotFound
    ? "; restore the state directory from a backup (docs/identity.md)"
    : "";
  return new StoreError(`Cannot use ${path}: ${seen}${remedy}`, undefined, {
    cause: error,
  });
}

export function foreignSentence(
  root: string,
  found: readonly string[],
): string {
  const some = found.slice(0, 5).join(", ") + (found.length > 5 ? ", …" : "");
  return `Cannot use state directory ${root}: it holds ${some} but no file ` +
    '"format", so it is not (or no longer) a tunnel server\'s; restore it ' +
    "from a backup, or name an empty one with --state-dir. No new CA was made";
}
