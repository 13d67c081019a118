/**
 * Flags about nodes: to join, to find the identity again, and for the
 * identifiers and services of a node. A token on the command line can be read
 * by every user of the machine, so it may come from a file or from standard
 * input.
 *
 * @module
 */

import { tunnelCodeOf } from "../../proto/codes/codes.ts";
import { hostname } from "node:os";
import { systemProblem } from "../../platform/files/file_error.ts";
import {
  JoinTokenError,
  parseJoinToken,
} from "../../proto/identity/join_token.ts";
import { isNodeName, NODE_NAME_RULE } from "../../proto/identity/node_name.ts";
import type { ServerAddress } from "../../net/dial/server_addresses.ts";
import { orMistake, unusable, UsageError } from "./usage_error.ts";
import { parseAgentServer } from "./addresses.ts";
import {
  common,
  type Flag,
  flag,
  type FlagDetails,
  FlagValueError,
} from "./flag.ts";
import { stateDirectoryFlag } from "./state_directory.ts";
import {
  type Identifiers,
  IdentifiersError,
  NO_IDENTIFIERS,
  parseIdentifiers,
} from "../../proto/peer/identifiers.ts";
import {
  isNamePattern,
  NAME_PATTERN_RULE,
} from "../../server/identity/claims.ts";

/** The addresses of servers, in one flag. */
export const SERVER_FLAG: Flag<readonly string[]> = common(flag.list([], {
  placeholder: "HOST[:PORT],…",
  help: "Servers, or load balancers in front of them. Each attempt takes " +
    "the next one and resolves its name again.",
  defaultText: "where the node has joined",
}));

/** The token from elsewhere, and as what and where a node joins. */
export const NODE_FLAGS = {
  "join-file": flag.word("FILE", {
    help: "Join with the token in this file; a command line can be read by " +
      "every user of this machine. -: read it from standard input.",
  }),
  "node": common(flag.word("NAME", {
    help: "Name to join as.",
    defaultText: "this machine's host name",
  })),
  "state-dir": stateDirectoryFlag("agent"),
} as const;

/** @throws {UsageError} One line. */
export function serverAddresses(
  texts: readonly string[],
): readonly ServerAddress[] {
  return texts.map(parseAgentServer);
}

/**
 * Checks the token and the name before any server is asked.
 *
 * @param ownName Of the machine.
 * @throws {UsageError} One line, without the token.
 */
export function joinRequest(
  token: string,
  node: string,
  ownName: () => string = hostname,
): { readonly token: string; readonly node: string } {
  orMistake([JoinTokenError], () => parseJoinToken(token));
  return { token, node: nodeName(node) ?? ownNodeName(ownName()) };
}

/** @throws {UsageError} One line. */
export function nodeName(text: string): string | undefined {
  if (text === "" || isNodeName(text)) return text || undefined;
  throw unusable("--node", text, NODE_NAME_RULE);
}

function ownNodeName(found: string): string {
  const name = found.toLowerCase();
  if (isNodeName(name)) return name;
  throw new UsageError(
    `Cannot name this node "${found}", as its host name is: wanted ` +
      `${NODE_NAME_RULE}; give it another one with --node`,
  );
}

/** Means standard input. */
const INPUT = "-";

/** What `tunnel token create` prints is less than this. */
const BYTES_MAX = 64 * 1024;

/** Reads texts; of the machine, unless a test has others. */
export interface TokenReaders {
  file(path: string): string;
  input(): string;
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
    throw new UsageError(
      `Cannot use --join-file ${file}: ${systemProblem(error)}`,
      tunnelCodeOf(error) ?? "TUN114",
    );
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

/** A pattern of node names; `*`, which all have, if not given. */
export function namePatternFlag(details: FlagDetails): Flag<string> {
  return flag.parsed("*", (text) => {
    if (isNamePattern(text)) return text;
    throw new FlagValueError(`wanted ${NAME_PATTERN_RULE}`);
  }, { placeholder: "PATTERN", defaultText: "*", ...details });
}

/** A URL query of an agent's identifiers. */
export function identifiersFlag(details: FlagDetails): Flag<Identifiers> {
  return flag.parsed(NO_IDENTIFIERS, readIdentifiers, details);
}

/** Means "no identifiers": an empty text counts as a flag not given. */
export const NO_GRANTS = "-";

/**
 * The same, in its original spelling.
 *
 * @param none A text that means "no identifiers".
 */
export function grantsFlag(details: FlagDetails, none?: string): Flag<string> {
  return flag.parsed("", (text) => {
    if (text !== none) readIdentifiers(text);
    return text;
  }, { placeholder: "QUERY", ...details });
}

/** @throws {FlagValueError} */
function readIdentifiers(text: string): Identifiers {
  try {
    return parseIdentifiers(text, "flag");
  } catch (error) {
    if (!(error instanceof IdentifiersError)) throw error;
    throw new FlagValueError(
      `wanted key=value pairs joined by &. ${error.message}`,
    );
  }
}
