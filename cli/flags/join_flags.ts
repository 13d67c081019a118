/**
 * Flags by which a node joins and finds its identity again; of `tunnel join`
 * and `tunnel agent`.
 *
 * @module
 */

import { hostname } from "node:os";
import type { IdentityOptions } from "../../agent/options.ts";
import {
  JoinTokenError,
  parseJoinToken,
} from "../../proto/identity/join_token.ts";
import { isNodeName, NODE_NAME_RULE } from "../../proto/identity/node_name.ts";
import type { ServerAddress } from "../../net/dial/server_addresses.ts";
import { UsageError } from "../usage_error.ts";
import { parseAgentServer } from "./addresses.ts";
import { type Flag, listFlag, textFlag } from "./flag.ts";
import { stateDirectoryFlag } from "./state_directory.ts";

/** Where servers are, in one flag. */
export function serverFlag(group: string): Flag<readonly string[]> {
  return listFlag([], {
    group,
    placeholder: "HOST[:PORT],…",
    help: "Servers, or load balancers before them; each attempt takes the " +
      "next one, and resolves its name anew.",
    defaultText: "where the node has joined",
  });
}

/** `--node` and `--state-dir`. */
export function nodeFlags(
  group: string,
): { readonly "node": Flag<string>; readonly "state-dir": Flag<string> } {
  return {
    "node": textFlag("", {
      group,
      placeholder: "NAME",
      help: "Name to join as.",
      defaultText: "this machine's host name",
    }),
    "state-dir": stateDirectoryFlag("agent", group),
  };
}

/** @throws {UsageError} One line. */
export function serverAddresses(
  texts: readonly string[],
): readonly ServerAddress[] {
  return texts.map((text) => parseAgentServer("--server", text));
}

/**
 * What a token says about itself is wrong or fine before anybody is asked.
 *
 * @param ownName Of the machine.
 * @throws {UsageError} One line, without the token.
 */
export function joinWish(
  token: string,
  node: string,
  ownName: () => string = hostname,
): Required<Pick<IdentityOptions, "token" | "node">> {
  try {
    parseJoinToken(token);
  } catch (error) {
    if (!(error instanceof JoinTokenError)) throw error;
    throw new UsageError(error.message);
  }
  return { token, node: nodeName(node) ?? ownNodeName(ownName()) };
}

/** @throws {UsageError} One line. */
export function nodeName(text: string): string | undefined {
  if (text === "" || isNodeName(text)) return text || undefined;
  throw new UsageError(
    `Cannot use --node: saw "${text}", wanted ${NODE_NAME_RULE}`,
  );
}

function ownNodeName(found: string): string {
  const name = found.toLowerCase();
  if (isNodeName(name)) return name;
  throw new UsageError(
    `Cannot name this node "${found}", as its host name is: wanted ` +
      `${NODE_NAME_RULE}; give it another one with --node`,
  );
}
