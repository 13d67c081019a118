/**
 * A mistake of the user, as one line: what was seen, what was wanted, and what to
 * do. Ends the process with `ExitCode.USAGE`.
 *
 * @module
 */

import { systemProblem } from "../../platform/files/file_error.ts";
import type { Code } from "../../proto/codes/codes.ts";

/** See the module description. */
export class UsageError extends Error {
  override readonly name = "UsageError";

  constructor(message: string, readonly tunnelCode: Code = "TUN101") {
    super(message);
  }
}

/** The refusal of what one flag or variable says. */
export function unusable(
  what: string,
  seen: string,
  wanted: string,
): UsageError {
  return new UsageError(`Cannot use ${what}: saw "${seen}", wanted ${wanted}`);
}

/**
 * A certificate and its key, which go together.
 *
 * @returns `undefined` when neither was given.
 * @throws {UsageError} When only one was.
 */
export function keyPair<Name extends string>(
  flags: Readonly<Record<Name, string>>,
  cert: Name,
  key: Name,
): { readonly certFile: string; readonly keyFile: string } | undefined {
  const [certFile, keyFile] = [flags[cert], flags[key]];
  if (certFile === "" && keyFile === "") return undefined;
  if (certFile !== "" && keyFile !== "") return { certFile, keyFile };
  const [seen, lacking] = certFile !== "" ? [cert, key] : [key, cert];
  throw new UsageError(
    `Cannot use --${seen} alone: --${lacking} belongs to it; give both`,
  );
}

/**
 * The text of a file that was named.
 *
 * @param what For the refusal, such as `Cannot use --file PATH`.
 * @throws {UsageError} When it cannot be read.
 */
export function textOf(
  what: string,
  path: string,
  readFile: (path: string) => string,
): string {
  try {
    return readFile(path);
  } catch (error) {
    throw new UsageError(`${what}: ${systemProblem(error)}`, "TUN114");
  }
}
