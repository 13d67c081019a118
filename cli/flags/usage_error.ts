/**
 * A mistake of the user, as one line: what was seen, what was wanted, and what to
 * do. Ends the process with `ExitCode.USAGE`.
 *
 * @module
 */

import { systemProblem } from "../../platform/files/file_error.ts";
import { type Code, tunnelCodeOf } from "../../proto/codes/codes.ts";

/** See the module description. */
export class UsageError extends Error {
  override readonly name = "UsageError";

  constructor(message: string, readonly tunnelCode: Code = "TUN101") {
    super(message);
  }
}

/**
 * Does what may find fault with what a user gave: errors of these kinds are
 * mistakes of the user then.
 */
export function orMistake<Result>(
  kinds: readonly (abstract new (...words: never[]) => Error)[],
  act: () => Result,
  words: (message: string) => string = String,
): Result {
  const refuse = (error: unknown): never => {
    const isMistake = kinds.some((kind) => error instanceof kind);
    if (!isMistake || !(error instanceof Error)) throw error;
    throw new UsageError(words(error.message), tunnelCodeOf(error));
  };
  try {
    const done = act();
    return done instanceof Promise ? done.catch(refuse) as Result : done;
  } catch (error) {
    return refuse(error);
  }
}

/** The refusal of one flag's or variable's value. */
export function unusable(
  what: string,
  seen: string,
  wanted: string,
): UsageError {
  return new UsageError(`Cannot use ${what}: saw "${seen}", wanted ${wanted}`);
}

/**
 * Refuses flags that may not stand beside, or without, another flag.
 *
 * @param isThere Whether a flag is given.
 * @param why The text after `Cannot use --flag `.
 * @throws {UsageError} For the first that is given.
 */
export function refuseFlags<Name extends string>(
  flags: Iterable<Name>,
  isThere: (flag: Name) => boolean,
  why: string,
): void {
  for (const flag of flags) {
    if (isThere(flag)) throw new UsageError(`Cannot use --${flag} ${why}`);
  }
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
  const [certFile, keyFile] = bothOf(flags, cert, key) ?? [];
  return certFile && keyFile ? { certFile, keyFile } : undefined;
}

/** The values of two flags that go together; the rest is as with `keyPair`. */
export function bothOf<Name extends string>(
  flags: Readonly<Record<Name, string>>,
  one: Name,
  other: Name,
): readonly [string, string] | undefined {
  const values = [flags[one], flags[other]] as const;
  if (!values.includes("")) return values;
  if (values[0] === values[1]) return undefined;
  const [seen, lacking] = values[0] !== "" ? [one, other] : [other, one];
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
