/**
 * A server's facts about a node, as the node stores them (`node.json`).
 *
 * @module
 */

import { PkiError } from "../../platform/pki/key_pair.ts";
import type { ServerAddress } from "../../net/dial/server_addresses.ts";
import { isNodeName } from "../../proto/identity/node_name.ts";
import {
  IdentifiersError,
  parseIdentifiers,
} from "../../proto/peer/identifiers.ts";

/** The server's facts about the node, and the server's address. */
export interface JoinedNode {
  readonly name: string;
  /** URL query of the identifiers that it was granted beside its name. */
  readonly identifiers: string;
  /** The address at which it joined. */
  readonly servers: readonly ServerAddress[];
}

/** In its stored form. */
export function formatJoinedNode(
  { name, identifiers, servers }: JoinedNode,
): string {
  return JSON.stringify(
    { format: "tunnel-agent-state", version: 1, name, identifiers, servers },
    null,
    2,
  ) + "\n";
}

/** @throws {PkiError} The caller says which file it was. */
export function parseJoinedNode(text: string): JoinedNode {
  let found: Record<string, unknown>;
  try {
    found = Object(JSON.parse(text));
  } catch {
    throw new PkiError("it is no whole JSON document");
  }
  const { format, version, name, identifiers, servers } = found;
  if (format !== "tunnel-agent-state") {
    throw new PkiError("it is not of an agent");
  }
  if (version !== 1) {
    throw new PkiError(
      `it has version ${String(version)}, wanted 1 (of a newer tunnel?)`,
    );
  }
  const isWhole = typeof name === "string" && isNodeName(name) &&
    typeof identifiers === "string" && isIdentifiers(identifiers) &&
    Array.isArray(servers) && servers.every(isServer);
  if (!isWhole) throw new PkiError("it does not say which node this is");
  return { name, identifiers, servers };
}

function isServer(found: unknown): found is ServerAddress {
  const { host, port } = Object(found);
  return typeof host === "string" && host !== "" && Number.isInteger(port) &&
    port > 0 && port < 65_536;
}

function isIdentifiers(query: string): boolean {
  try {
    parseIdentifiers(query, "server");
    return true;
  } catch (error) {
    if (error instanceof IdentifiersError) return false;
    throw error;
  }
}
