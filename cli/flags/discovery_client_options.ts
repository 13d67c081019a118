/**
 * Flags about a discovery server to the source of services that follows it.
 *
 * @module
 */

import { hostname } from "node:os";
import { AdsSource } from "../../agent/proxy/ads/ads_source.ts";
import type { IdentityRoad } from "../../agent/identity/identity_road.ts";
import { LastKnownGood } from "../../agent/proxy/ads/last_known_good.ts";
import { proxyNode } from "../../agent/proxy/ads/proxy_node.ts";
import { type AdsRoad, plainRoad, tlsRoad } from "../../client/ads/ads_road.ts";
import type { Log } from "../../platform/log/log.ts";
import { proxyEnvironment } from "../../net/dial/proxy_environment.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import {
  type Credentials,
  CredentialsError,
  type TlsMaterial,
} from "../../net/tls/trust/credentials.ts";
import { TUNNEL_SERVER_NAME } from "../../proto/identity/node_name.ts";
import type { CommandContext } from "../command.ts";
import { UsageError } from "../usage_error.ts";
import { type AdsAccess, adsAccess } from "./ads_access.ts";
import {
  DISCOVERY_CLIENT_FLAGS,
  KEEPS_NOTHING,
} from "./discovery_client_flags.ts";
import type { FlagValues } from "./flag.ts";
import {
  defaultStateDirectory,
  proxyStateDirectory,
} from "./state_directory.ts";

type Values = FlagValues<typeof DISCOVERY_CLIENT_FLAGS>;

/** More is a mistake. */
const SERVERS_MAX = 64;

/**
 * The source that `--discovery` names.
 *
 * @param zone Where this machine is; empty: nobody knows.
 * @param identity Of a node that has joined.
 * @returns `undefined` when it was not given.
 * @throws {UsageError} One line.
 */
export function discoverySource(
  { values, given }: {
    readonly values: Values;
    readonly given: ReadonlySet<string>;
  },
  { readFile, environment }: Pick<CommandContext, "readFile" | "environment">,
  log: Log,
  zone: string,
  identity?: IdentityRoad,
): AdsSource | undefined {
  const access = discoveryAccess(values, { readFile, environment });
  if (access === undefined) {
    // Who the node is is said to tunnel servers, too.
    const odd = Object.keys(DISCOVERY_CLIENT_FLAGS)
      .find((name) => name.startsWith("discovery-") && given.has(name));
    if (odd === undefined) return undefined;
    throw new UsageError(
      `Cannot use --${odd} without --discovery: it says nothing about other ` +
        "sources of services; remove it, or give --discovery HOST:PORT",
    );
  }
  const node = values["discovery-node"] || ownNode(access);
  const timers = systemTimers;
  const path = stateFile(values["discovery-state"], environment);
  const kept = path === undefined
    ? undefined
    : new LastKnownGood({ path, node, timers, log });
  return new AdsSource({
    ...roadOf(access, environment, identity),
    mode: values["discovery-mode"],
    node: proxyNode(node, zone),
    timers,
    random: Math.random,
    log,
    ...kept === undefined ? {} : { kept },
  });
}

/**
 * How `--discovery` gets in.
 *
 * @returns `undefined` when it was not given.
 * @throws {UsageError} One line.
 */
export function discoveryAccess(
  values: Values,
  { readFile, environment }: Pick<CommandContext, "readFile" | "environment">,
): AdsAccess | undefined {
  const servers = values["discovery"];
  if (servers.length === 0) return undefined;
  if (servers.length > SERVERS_MAX) {
    throw new UsageError(
      `Cannot use --discovery: saw ${servers.length} servers, wanted ` +
        `${SERVERS_MAX} at most`,
    );
  }
  return adsAccess({
    servers,
    caFile: values["discovery-ca-cert"],
    certFile: values["agent-cert"],
    keyFile: values["agent-key"],
    stateDirectory: values["state-dir"],
    names: { servers: "discovery", ca: "discovery-ca-cert" },
  }, {
    readFile,
    defaultStateDirectory: defaultStateDirectory("agent", environment),
  });
}

function roadOf(
  access: AdsAccess,
  environment: CommandContext["environment"],
  identity: IdentityRoad | undefined,
): {
  readonly road: AdsRoad;
  readonly onSilentEnd?: () => void;
  readonly onStopped?: () => void;
} {
  const proxyEnv = proxyEnvironment(environment);
  const { addresses } = access;
  switch (access.kind) {
    case "plain":
      return { road: plainRoad(addresses) };
    case "files":
      return {
        road: tlsRoad({
          addresses,
          credentials: () => current(access.credentials),
          proxyEnv,
        }),
      };
    case "joined":
      if (identity === undefined) {
        throw new TypeError("Cannot follow discovery as nobody");
      }
      return {
        road: tlsRoad({
          addresses,
          identity,
          credentials: () => identity.current,
          serverName: TUNNEL_SERVER_NAME,
          proxyEnv,
        }),
        onSilentEnd: () => identity.doubt(),
        onStopped: () => identity.stop(),
      };
  }
}

/** Files may be replaced at any time; each connection shows what is there. */
export function current(credentials: Credentials): TlsMaterial {
  try {
    credentials.reload();
  } catch (error) {
    // Half of a replacement, most often: what is in hand serves.
    if (!(error instanceof CredentialsError)) throw error;
  }
  return credentials.current;
}

function ownNode(access: AdsAccess): string {
  const name = access.kind === "plain" ? "" : access.node;
  return `${name || hostname()}/proxy`;
}

function stateFile(
  text: string,
  environment: CommandContext["environment"],
): string | undefined {
  if (text === KEEPS_NOTHING) return undefined;
  return text || `${proxyStateDirectory(environment)}/discovery`;
}
