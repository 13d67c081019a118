/**
 * What is wrong with a file that the user gave us, in one sentence.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import { messageOf } from "../errors/error_code.ts";

/** What the machine's errors mean to the user who started the program. */
const SYSTEM_PROBLEMS: ReadonlyMap<string, string> = new Map([
  ["ENOENT", "there is no such file"],
  ["EACCES", "permission denied; run as its owner"],
  ["EPERM", "permission denied; run as its owner"],
  ["ENOSPC", "the disk is full; make room and try again"],
  ["EDQUOT", "the disk quota is used up; make room and try again"],
  ["EROFS", "the file system is read-only; name a path on another one"],
  ["ENOTDIR", "a part of the path is no directory; name another one"],
  ["EISDIR", "it is a directory; name a file"],
]);

/** The machine's fault, such as a full disk: not a peer's, and no bug. */
export function isSystemError(
  error: unknown,
): error is Error & { readonly code: string } {
  return error instanceof Error && "code" in error &&
    typeof error.code === "string" && /^E[A-Z]+$/.test(error.code);
}

/** The machine's error, as the end of a sentence about a path. */
export function systemProblem(error: unknown): string {
  const code = error instanceof Deno.errors.NotFound
    ? "ENOENT"
    : error instanceof Deno.errors.NotCapable
    ? "EACCES"
    : isSystemError(error)
    ? error.code
    : "";
  return SYSTEM_PROBLEMS.get(code) ??
    (messageOf(error));
}

/** A file that cannot be used. `message` names it and the remedy. */
export class FileError extends Error {
  override readonly name: string = "FileError";
  readonly tunnelCode: Code = "TUN114";
  /** From when it can be used as it is, in Unix milliseconds; absent: never. */
  readonly goodFromMs?: number;

  constructor(
    message: string,
    options?: ErrorOptions & { readonly goodFromMs?: number },
  ) {
    super(message, options);
    const { goodFromMs } = options ?? {};
    if (goodFromMs !== undefined) this.goodFromMs = goodFromMs;
  }
}
