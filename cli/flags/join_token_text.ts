/**
 * Where a join token comes from, when not from the command line, where every
 * user of the machine could read it: a file, or standard input.
 *
 * @module
 */

import { UsageError } from "../usage_error.ts";
import { type Flag, textFlag } from "./flag.ts";

/** Stands for standard input. */
const INPUT = "-";

/** What `tunnel token create` prints is less than this. */
const BYTES_MAX = 64 * 1024;

/** Reads texts; of the machine, unless a test has others. */
export interface TokenReaders {
  file(path: string): string;
  input(): string;
}

/** `--join-file`. */
export function joinFileFlag(group: string): Flag<string> {
  return textFlag("", {
    group,
    placeholder: "FILE",
    help: "Join with the token in this file: the command line is for all " +
      "users of this machine to read. -: from standard input.",
  });
}

/**
 * The token that words or `--join-file` mean; empty: none.
 *
 * @param word The token, or `-`.
 * @param file Of `--join-file`.
 * @throws {UsageError} One line, without the token.
 */
export function joinTokenText(
  word: string,
  file: string,
  readers: TokenReaders = MACHINE,
): string {
  if (word !== "" && file !== "") {
    throw new UsageError(
      "Cannot join: a token is given and --join-file as well; give one of them",
    );
  }
  if (word === INPUT || file === INPUT) {
    return tokenIn(readers.input(), "standard input");
  }
  if (file === "") return word;
  try {
    return tokenIn(readers.file(file), file);
  } catch (error) {
    if (error instanceof UsageError || !(error instanceof Error)) throw error;
    throw new UsageError(`Cannot use --join-file ${file}: ${error.message}`);
  }
}

/** The line of `tunnel token create` may stand there as a whole. */
function tokenIn(text: string, where: string): string {
  const token = /\btnl\d+\.\S+/.exec(text)?.[0];
  if (token !== undefined) return token;
  throw new UsageError(
    `Cannot join: there is no token in ${where}; wanted what \`tunnel token ` +
      "create` prints",
  );
}

const MACHINE: TokenReaders = {
  file: (path) => Deno.readTextFileSync(path).slice(0, BYTES_MAX),
  input() {
    const into = new Uint8Array(BYTES_MAX);
    let length = 0;
    while (length < into.length) {
      const count = Deno.stdin.readSync(into.subarray(length));
      if (count === null) break;
      length += count;
      // A person ends a line, and not the input.
      if (Deno.stdin.isTerminal()) break;
    }
    return new TextDecoder().decode(into.subarray(0, length));
  },
};
