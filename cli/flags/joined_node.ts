/**
 * The identity of a node that has joined, as commands that go in its name read
 * it; what cannot be used is refused as a mistake of the command line.
 *
 * @module
 */

import { tunnelCodeOf } from "../../proto/codes/coded.ts";
import {
  type JoinedNode,
  parseJoinedNode,
} from "../../agent/identity/joined_node.ts";
import type { NodeRoute } from "../../client/tunnel_route.ts";
import {
  type CredentialFiles,
  Credentials,
  CredentialsError,
} from "../../net/tls/trust/credentials.ts";
import { systemProblem } from "../../platform/files/file_error.ts";
import { PkiError } from "../../platform/pki/key_pair.ts";
import { TUNNEL_SERVER_NAME } from "../../proto/identity/node_name.ts";
import { UsageError } from "./usage_error.ts";

/**
 * What the node keeps about itself.
 *
 * @param root Where its agent keeps its identity.
 * @throws {UsageError} One line.
 */
export function readJoined(
  root: string,
  readFile: (path: string) => string,
): JoinedNode {
  const path = `${root}/node.json`;
  try {
    return parseJoinedNode(readFile(path));
  } catch (error) {
    const problem = error instanceof PkiError
      ? error.message
      : systemProblem(error);
    const code = error instanceof PkiError ? "TUN314" : "TUN114";
    throw new UsageError(`Cannot use ${path}: ${problem}`, code);
  }
}

/** Its certificate, and whom it trusts. */
export function joinedFiles(root: string): Required<CredentialFiles> {
  const [ca, cert, key] = ["ca", "cert", "key"]
    .map((name) => `${root}/${name}.pem`);
  return { ca, cert, key };
}

/** The route as that node. */
export function joinedRoute(
  root: string,
  rest: Pick<NodeRoute, "addresses" | "identity" | "proxyEnv">,
): NodeRoute {
  return {
    kind: "node",
    ...rest,
    files: joinedFiles(root),
    serverName: TUNNEL_SERVER_NAME,
  };
}

/** @throws {UsageError} One line. */
export function loadCredentials(
  ...from: Parameters<typeof Credentials.load>
): Credentials {
  try {
    return Credentials.load(...from);
  } catch (error) {
    if (!(error instanceof CredentialsError)) throw error;
    throw new UsageError(error.message, tunnelCodeOf(error));
  }
}
