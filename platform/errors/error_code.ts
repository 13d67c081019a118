/**
 * The code and the message of any thrown value, and what is known where an
 * error says no more than that nothing is.
 *
 * @module
 */

/** What the machine's errors mean for a file to the user who named it. */
const FILE_PROBLEMS: ReadonlyMap<string, string> = new Map([
  ["ENOENT", "there is no such file"],
  ["EACCES", "permission denied; run as its owner"],
  ["EPERM", "permission denied; run as its owner"],
  ["ENOSPC", "the disk is full; make room and try again"],
  ["EDQUOT", "the disk quota is used up; make room and try again"],
  ["EROFS", "the file system is read-only; name a path on another one"],
  ["EIO", "the disk fails; look at the kernel's log"],
  ["ENOTDIR", "a part of the path is no directory; name another one"],
  ["EISDIR", "it is a directory; name a file"],
  ["ENAMETOOLONG", "its name is too long; name another one"],
  ["ELOOP", "its symbolic links lead in a circle; name another one"],
  ["EMFILE", "too many files are open; raise `ulimit -n`"],
  ["ENFILE", "too many files are open on this machine; close some"],
]);

/** The platform's form of the number, followed by a call and its paths. */
const NUMBER = / \(os error \d+\)/g;
const FILE_CALL = / \(os error \d+\): \w+(?: '.*' ->)? '(.*)'$/s;

/** @returns What it gives; undefined when it fails, which is no news. */
export function quietly<Result>(act: () => Result): Result | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}

/** The `E…` code of a system error; empty when there is none. */
export function codeOf(error: unknown): string {
  if (typeof error !== "object" || error === null) return "";
  const code = (error as { code?: unknown }).code;
  return typeof code === "string" ? code : "";
}

/**
 * The error as a sentence; for a file with its name and a remedy. The
 * platform's own text is never shown, because an error number means nothing to
 * users.
 */
export function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const [, path] = FILE_CALL.exec(message) ?? [];
  return path === undefined
    ? message.replaceAll(NUMBER, "")
    : `cannot use ${path}: ${systemProblem(error)}`;
}

/** The machine's error, as the end of a sentence about a path. */
export function systemProblem(error: unknown): string {
  const code = error instanceof Deno.errors.NotFound ? "ENOENT" : codeOf(error);
  const known = FILE_PROBLEMS.get(code);
  if (known !== undefined) return known;
  const message = error instanceof Error ? error.message : String(error);
  return message.replace(FILE_CALL, "").replaceAll(NUMBER, "");
}

/**
 * The same error, about the file that the user knows: the platform names no
 * file when the disk is full, and a temporary one when a file is renamed.
 */
export function withFile(error: unknown, path: string): unknown {
  if (error instanceof Error) {
    const about = `$1: write '${path.replaceAll("$", "$$$$")}'`;
    error.message = error.message.replace(/( \(os error \d+\)).*$/s, about);
  }
  return error;
}
