/**
 * The route of a node: through a server's port for agents, with the identity that
 * the node has joined with, or with files. What cannot be used of them is refused
 * as a mistake of the command line.
 *
 * @module
 */

import { hasJoined } from "../../agent/identity/agent_state.ts";
import type { NodeRoute } from "../../client/tunnel_route.ts";
import type { Log } from "../../platform/log/log.ts";
import {
  type ProxyEnvironment,
  proxyEnvironment,
} from "../../net/dial/proxy_environment.ts";
import type { ServerAddress } from "../../net/dial/server_addresses.ts";
import { keyPair, orMistake, UsageError } from "./usage_error.ts";
import { parseAgentServer, parseServerList } from "./addresses.ts";
import { FollowedIdentity } from "../../agent/identity/followed_identity.ts";
import { given } from "../../platform/documents/given.ts";
import type { FlagSources, GivenValues } from "./read_flags.ts";
import {
  type JoinedNode,
  parseJoinedNode,
} from "../../agent/identity/joined_node.ts";
import {
  type CredentialFiles,
  Credentials,
  CredentialsError,
} from "../../net/tls/trust/credentials.ts";
import { systemProblem } from "../../platform/files/file_error.ts";
import { PkiError } from "../../platform/pki/key_pair.ts";
import { TUNNEL_SERVER_NAME } from "../../proto/identity/node_name.ts";

/** Values of the flags. */
export type NodeRouteFlags = Readonly<
  Record<
    | ("server" | "proxy-mode" | "ca-cert" | "cert" | "key")
    | ("tls-server-name" | "state-dir" | "agent-cert" | "agent-key"),
    string
  >
>;

/** What is read of the machine. */
export interface RouteSources
  extends Pick<FlagSources, "readFile" | "environment"> {
  /** Of changes, where a node's identity is followed; absent: it is read once. */
  readonly log?: () => Log;
  /** The command ends soon. */
  readonly isBrief?: boolean;
}

/**
 * @param stateDirectory The default directory of agents' identities.
 * @throws {UsageError} One line.
 */
export function nodeRouteOf(
  { values: flags, given: named }: GivenValues<NodeRouteFlags>,
  sources: RouteSources,
  stateDirectory: string,
): NodeRoute {
  refuseFrontend(flags, named);
  const proxyEnv = proxyEnvironment(sources.environment);
  const addresses = flags["server"] === ""
    ? undefined
    : parseServerList(flags["server"]).map(parseAgentServer);
  const pair = keyPair(flags, "agent-cert", "agent-key");
  if (pair === undefined) {
    const root = flags["state-dir"] || stateDirectory;
    return routeAsJoined(root, flags, sources, addresses, proxyEnv);
  }
  if (flags["state-dir"] !== "") {
    throw new UsageError(
      "Cannot use --state-dir together with --agent-cert: both say who this " +
        "node is; keep one",
    );
  }
  const ca = flags["ca-cert"];
  if (ca === "" || addresses === undefined) {
    throw new UsageError(
      "Cannot use --agent-cert without --ca-cert and --server: they say how to " +
        "verify the server, and where it is; give both",
    );
  }
  return given({
    kind: "node",
    addresses,
    files: { ca, cert: pair.certFile, key: pair.keyFile },
    serverName: flags["tls-server-name"] || undefined,
    proxyEnv,
  });
}

function routeAsJoined(
  root: string,
  flags: NodeRouteFlags,
  { readFile, environment, log, isBrief = false }: RouteSources,
  addresses: readonly ServerAddress[] | undefined,
  proxyEnv: ProxyEnvironment,
): NodeRoute {
  if (flags["ca-cert"] !== "") {
    throw new UsageError(
      "Cannot use --ca-cert for a node that has joined: it trusts the " +
        "server's own CA; remove it, or add --agent-cert and --agent-key",
    );
  }
  if (!hasJoined(root)) {
    throw new UsageError(
      `Cannot connect as a node: there is no identity in ${root}; tunnel join, ` +
        "name another --state-dir, or give --agent-cert, --agent-key, " +
        "--ca-cert and --server",
      "TUN309",
    );
  }
  const found = addresses ?? joinedServers(root, readFile);
  const identity = log === undefined ? undefined : new FollowedIdentity(
    { stateDirectory: root, addresses: found },
    { log: log(), environment, isBrief },
  );
  return joinedRoute(root, given({ addresses: found, identity, proxyEnv }));
}

function joinedServers(
  root: string,
  readFile: (path: string) => string,
): readonly ServerAddress[] {
  const { servers } = readJoined(root, readFile);
  if (servers.length > 0) return servers;
  throw new UsageError(
    `Cannot find the server: ${root}/node.json names none; give --server`,
  );
}

/** Flags for a frontend would be ignored here. */
function refuseFrontend(
  flags: NodeRouteFlags,
  given: ReadonlySet<string>,
): void {
  const odd = (["cert", "key"] as const).find((name) => flags[name] !== "");
  if (odd !== undefined) {
    throw new UsageError(
      `Cannot use --${odd} as a node: it is for a frontend; use ` +
        `--agent-${odd}, or remove what makes this a node's route`,
    );
  }
  if (flags["proxy-mode"] !== "grpc" && given.has("proxy-mode")) {
    throw new UsageError(
      `Cannot use --proxy-mode=${flags["proxy-mode"]} as a node: the port ` +
        "for agents speaks gRPC only; remove it",
    );
  }
  const frontend = flags["server"].split(",")
    .find((server) => server.trim().startsWith("unix:"));
  if (frontend !== undefined) {
    throw new UsageError(
      `Cannot connect as a node to ${frontend.trim()}: that is a frontend; ` +
        "wanted HOST:PORT of the server's port for agents",
    );
  }
}

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
  return orMistake([CredentialsError], () => Credentials.load(...from));
}
