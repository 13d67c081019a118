/**
 * Small files that are either the old or the new one, whatever happens: a
 * crash, a full disk, a `kill -9`, a second process that writes the same name.
 *
 * A file is written beside its name, made durable, and then renamed; so is the
 * directory's entry. Files are for their owner only unless a mode is given.
 *
 * @module
 */

import { dirname } from "node:path";
import { systemProblem, withFile } from "../errors/error_code.ts";
import { ifThere, isSystemError } from "./file_error.ts";

/** For the owner only: most files of this kind are secret. */
const PRIVATE_MODE = 0o600;

/** What unfinished files begin with. Readers of a directory skip these. */
export const UNFINISHED = ".unfinished-";

/** So much of a file's own name follows: names have 255 bytes at most. */
const OWN_NAME_BYTES_MAX = 100;

/**
 * Writes `text` to `path`, in place of the old content.
 *
 * @throws {Error} The platform's, with the old file still in place.
 */
export async function replaceFile(
  path: string,
  text: string,
  mode: number = PRIVATE_MODE,
): Promise<void> {
  const unfinished = await writeUnfinished(path, text, mode);
  try {
    await Deno.rename(unfinished, path);
  } catch (error) {
    await removeFile(unfinished);
    throw withFile(error, path);
  }
  await syncDirectory(dirname(path));
}

/**
 * Keeps what no connection depends on: written only if it is news, so that a
 * full disk keeps no program from starting.
 *
 * @param warn Told the sentence when it cannot be written.
 * @returns Whether it is there.
 */
export async function keepFile(
  path: string,
  text: string,
  warn: (line: string) => void,
  mode?: number,
): Promise<boolean> {
  try {
    const before = await Deno.readTextFile(path).catch(() => undefined);
    if (before !== text) await replaceFile(path, text, mode);
    return true;
  } catch (error) {
    if (!isSystemError(error)) throw error;
    warn(`Cannot keep ${path}: ${systemProblem(error)}`);
    return false;
  }
}

/**
 * Puts `text` at `path` unless there is something: of several attempts at once,
 * in however many processes, exactly one wins.
 *
 * @returns Whether it was us.
 */
export async function createFile(
  path: string,
  text: string,
  mode: number = PRIVATE_MODE,
): Promise<boolean> {
  const unfinished = await writeUnfinished(path, text, mode);
  try {
    // Unlike rename, link never replaces; unlike O_EXCL it brings the content.
    await Deno.link(unfinished, path);
  } catch (error) {
    if (error instanceof Deno.errors.AlreadyExists) return false;
    throw error;
  } finally {
    await removeFile(unfinished);
  }
  await syncDirectory(dirname(path));
  return true;
}

/** @returns Whether there was such a file. */
export async function removeFile(
  path: string,
  options?: Deno.RemoveOptions,
): Promise<boolean> {
  const removed = Deno.remove(path, options).then(() => true);
  return await ifThere(removed) ?? false;
}

/** Names in `directory`, sorted, without files that were never finished. */
export async function finishedFiles(directory: string): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of Deno.readDir(directory)) {
    if (!name.startsWith(UNFINISHED)) names.push(name);
  }
  return names.sort();
}

/**
 * Removes what a crash has left behind. For when no other process is writing.
 */
export async function removeUnfinished(directory: string): Promise<void> {
  for await (const { name } of Deno.readDir(directory)) {
    if (name.startsWith(UNFINISHED)) await removeFile(`${directory}/${name}`);
  }
}

/** The same of one file, in a directory where others may be writing theirs. */
export async function removeUnfinishedOf(path: string): Promise<void> {
  const directory = dirname(path);
  const begin = unfinishedPrefix(path);
  for await (const { name } of Deno.readDir(directory)) {
    if (name.startsWith(begin)) await removeFile(`${directory}/${name}`);
  }
}

/** Makes the entries of a directory durable: fsync(2) of a file does not. */
export async function syncDirectory(path: string): Promise<void> {
  // Windows opens no directory as a file, and its NTFS has a journal.
  if (Deno.build.os === "windows") return;
  using directory = await Deno.open(path, { read: true });
  await directory.sync();
}

async function writeUnfinished(
  path: string,
  text: string,
  mode: number,
): Promise<string> {
  const name = `${unfinishedPrefix(path)}${crypto.randomUUID()}`;
  const unfinished = `${dirname(path)}/${name}`;
  try {
    using file = await Deno.open(unfinished, {
      write: true,
      createNew: true,
      mode,
    });
    let bytes = new TextEncoder().encode(text);
    while (bytes.length > 0) {
      bytes = bytes.subarray(await file.write(bytes));
    }
    await file.sync();
  } catch (error) {
    await removeFile(unfinished);
    throw withFile(error, path);
  }
  return unfinished;
}

function unfinishedPrefix(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return `${UNFINISHED}${name.slice(0, OWN_NAME_BYTES_MAX)}-`;
}
