/**
 * Files that hold secrets: read only when they are whole and no other user
 * could have read or changed them.
 *
 * It does not know their content; the reader says what to do when a file is
 * damaged.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import { systemProblem } from "./file_error.ts";

/** A file or folder that cannot be used. One sentence. */
export class PrivateFileError extends Error {
  override readonly name = "PrivateFileError";
  readonly tunnelCode: Code = "TUN801";
}

/** Bits that let a group or everybody do anything, or write. */
const OTHERS = 0o077;
const OTHERS_WRITE = 0o022;

/** The mode of a file is made up on Windows: a profile's folders are its user's. */
const HAS_MODES = Deno.build.os !== "windows";

/**
 * Checks which users may use a file or folder.
 *
 * @param others What others must not be able to do.
 * @throws {PrivateFileError} When they could, it is not ours, or not there.
 */
export async function checkPrivate(
  path: string,
  others: "read" | "change",
): Promise<void> {
  checkSeen(path, await privateFileError(path, () => Deno.stat(path)), others);
}

/**
 * The same for the state that was read at `path`.
 *
 * @throws {PrivateFileError} When others had access, or it is not ours.
 */
export function checkSeen(
  path: string,
  { mode, uid, isDirectory }: Deno.FileInfo,
  others: "read" | "change",
): void {
  const bits = others === "read" ? OTHERS : OTHERS_WRITE;
  if (HAS_MODES && mode !== null && (mode & bits) !== 0) {
    const seen = (mode & 0o777).toString(8).padStart(4, "0");
    const isProgram = others === "change" && (mode & 0o100) !== 0;
    const wanted = isDirectory ? "0700" : isProgram ? "0755" : "0600";
    throw new PrivateFileError(
      `Cannot use ${path}: its mode is ${seen}, wanted ${wanted}: others ` +
        `could ${others} it; look who did, then chmod ${wanted} ${path}`,
    );
  }
  const us = Deno.uid();
  if (uid !== null && us !== null && uid !== us && uid !== 0) {
    throw new PrivateFileError(
      `Cannot use ${path}: it belongs to user ${uid}, and this is user ` +
        `${us}; run as its owner, or change the owner`,
    );
  }
}

/** Does something with `path`; what the machine refuses becomes a sentence. */
export async function privateFileError<Result>(
  path: string,
  act: () => Promise<Result>,
): Promise<Result> {
  try {
    return await act();
  } catch (error) {
    const isSystems = error instanceof Error && "code" in error;
    if (!isSystems) throw error;
    const sentence = `Cannot use ${path}: ${systemProblem(error)}`;
    throw new PrivateFileError(sentence, { cause: error });
  }
}
