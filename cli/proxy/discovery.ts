/**
 * Discovery servers that `tunnel proxy` follows: the flags, the plain data that
 * they mean, and the route to endpoints behind agents: the route that flags
 * name; otherwise the node's identity and the servers that it follows for
 * services.
 *
 * @module
 */

import { hostname } from "node:os";
import type { AdsAccess } from "../../agent/identity/ads_access.ts";
import type { DiscoveryClientConfig } from "../../agent/proxy/discovery_source.ts";
import { ADS_FLAGS, adsAccess } from "../flags/ads_access.ts";
import { common, flag, type FlagValues, inGroup } from "../flags/flag.ts";
import { given } from "../../platform/documents/given.ts";
import type {
  FlagReading,
  FlagSources,
  GivenValues,
} from "../flags/read_flags.ts";
import {
  defaultStateDirectory,
  stateDirectoryFlag,
} from "../flags/state_directory.ts";
import { refuseFlags, UsageError } from "../flags/usage_error.ts";
import type { NodeIdentity, TunnelRoute } from "../../client/tunnel_route.ts";
import { proxyEnvironment } from "../../net/dial/proxy_environment.ts";
import { joinedRoute, type RouteSources } from "../flags/node_route.ts";
import {
  hasLocalFrontend,
  ROUTE_ONLY_FLAGS,
  routeIfAny,
} from "../flags/route_flags.ts";

/** What keeps nothing on disk. */
export const KEEPS_NOTHING = "none";

/** In the order in which the help shows them. */
export const DISCOVERY_CLIENT_FLAGS = inGroup("Discovery", {
  "discovery": common(flag.list([], {
    placeholder: "HOST:PORT,…",
    help: "Follow these discovery servers (tunnel server --discovery): a " +
      "server's agent port, or a loopback address that needs no " +
      "authentication. If one fails, the next one is used; if all fail, " +
      "the last known state is served.",
    defaultText: "none",
  })),
  "discovery-mode": ADS_FLAGS.mode,
  "discovery-node": flag.word("NAME", {
    help:
      "Name of this proxy at the server: the node's name, or NAME/ANYTHING.",
    defaultText: "the node's name and /proxy",
  }),
  "discovery-state": flag.word("FILE", {
    help: "Keep the last known state in this file, for a start without a " +
      `server; ${KEEPS_NOTHING}: keep nothing.`,
    defaultText: "/var/lib/tunnel/proxy/discovery for root, else " +
      "~/.local/state/tunnel/proxy/discovery",
  }),
  "discovery-ca-cert": ADS_FLAGS.ca,
  ...ADS_FLAGS.pair,
  "state-dir": stateDirectoryFlag("agent"),
});

type Values = FlagValues<typeof DISCOVERY_CLIENT_FLAGS>;

/** What is read of the machine. */
type Machine = Pick<FlagSources, "readFile" | "environment">;

/** More is a mistake. */
const SERVERS_MAX = 64;

/**
 * The discovery servers, and the identity for them.
 *
 * @param access The route of `--discovery`.
 * @param zone Where this machine is; empty: unknown.
 * @returns `undefined` when no server is named.
 * @throws {UsageError} One line.
 */
export function discoveryClientConfig(
  { values, given: named }: GivenValues<Values>,
  access: AdsAccess | undefined,
  { environment }: Pick<Machine, "environment">,
  zone: string,
): DiscoveryClientConfig | undefined {
  if (access === undefined) {
    // The node's name is sent to tunnel servers, too.
    refuseFlags(
      Object.keys(DISCOVERY_CLIENT_FLAGS),
      (name) => name.startsWith("discovery-") && named.has(name),
      "without --discovery: it says nothing about other sources of services; " +
        "remove it, or give --discovery HOST:PORT",
    );
    return undefined;
  }
  const stateFile = stateFileOf(values["discovery-state"], environment);
  return given({
    access,
    mode: values["discovery-mode"],
    node: values["discovery-node"] || ownNode(access),
    zone,
    stateFile,
  });
}

/**
 * The route of `--discovery`.
 *
 * @returns `undefined` when the flag was not given. @throws {UsageError} One
 *   line.
 */
export function discoveryAccess(
  values: Values,
  machine: Machine,
): AdsAccess | undefined {
  const servers = values["discovery"];
  if (servers.length === 0) return undefined;
  if (servers.length > SERVERS_MAX) {
    throw new UsageError(
      `Cannot use --discovery: saw ${servers.length} servers, wanted ` +
        `${SERVERS_MAX} at most`,
    );
  }
  const ca = values["discovery-ca-cert"];
  const names = { servers: "discovery", ca: "discovery-ca-cert" };
  return adsAccess({ ...values, servers, ca }, names, machine);
}

function ownNode(access: AdsAccess): string {
  const name = access.kind === "plain" ? "" : access.node;
  return `${name || hostname()}/proxy`;
}

function stateFileOf(
  text: string,
  environment: Machine["environment"],
): string | undefined {
  if (text === KEEPS_NOTHING) return undefined;
  return text || `${defaultStateDirectory("proxy", environment)}/discovery`;
}

/** Flags that are about discovery as well. */
const SHARED: readonly string[] = ["agent-cert", "agent-key", "state-dir"];

/**
 * @param access The access to discovery servers, if there are any.
 * @param identity The node's identity, when it has joined.
 * @returns `undefined` when there is none and no flag asks for one.
 * @throws {UsageError} One line.
 */
export function proxyRoute(
  reading: FlagReading<typeof ROUTE_ONLY_FLAGS>,
  context: RouteSources,
  access: AdsAccess | undefined,
  identity?: NodeIdentity,
): TunnelRoute | undefined {
  const isNamed = Object.keys(ROUTE_ONLY_FLAGS)
    .some((name) => reading.given.has(name) && !SHARED.includes(name));
  const proxyEnv = proxyEnvironment(context.environment);
  const isOwn = isNamed || hasLocalFrontend(context.environment);
  if (!isOwn && access?.kind === "joined") {
    const { addresses, stateDirectory } = access;
    const rest = given({ addresses, identity, proxyEnv });
    return joinedRoute(stateDirectory, rest);
  }
  // Without a certificate the server does not know this node.
  if (!isOwn && access?.kind === "files" && access.files.cert !== "") {
    const { addresses, files } = access;
    return { kind: "node", addresses, files, proxyEnv };
  }
  return routeIfAny(reading, context);
}
