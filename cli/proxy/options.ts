/**
 * Flags of `tunnel proxy` to the options of the proxy.
 *
 * @module
 */

import { accessLog, auditOptions } from "../flags/access_log_flags.ts";
import { openAddressFile } from "../../services/proxy/addresses/local_address.ts";
import { discoverySource } from "../../agent/proxy/discovery_source.ts";
import { FollowedIdentity } from "../../agent/identity/followed_identity.ts";
import { proxyEnvironment } from "../../net/dial/proxy_environment.ts";
import {
  type LocalAddresses,
  virtualRange,
} from "../../services/proxy/addresses/local_address.ts";
import type { NodeProxyOptions } from "../../agent/proxy/node_proxy.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import { nodeUpstream } from "../../client/frontend_stream.ts";
import type { TunnelRoute } from "../../client/tunnel_route.ts";
import type { AdminAccess } from "../../net/listen/admin_port.ts";
import type { ListenAddress } from "../../net/listen/listeners.ts";
import type { Log } from "../../platform/log/log.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { isLoopbackHost, parseIpAddress } from "../../proto/peer/ip_address.ts";
import type { WorkerRole } from "../program/workers/worker_words.ts";
import type { CommandContext } from "../program/command.ts";
import { adminAccess } from "../flags/program_flags.ts";
import { PROXY_ADMIN_PORT } from "../flags/admin_flags.ts";
import { refuseFlags, unusable } from "../flags/usage_error.ts";
import { placeOf } from "../flags/addresses.ts";
import { catalogConfig } from "../flags/catalog_flags.ts";
import { openSources } from "../program/sources.ts";
import {
  discoveryAccess,
  discoveryClientConfig,
  KEEPS_NOTHING,
  proxyRoute,
} from "./discovery.ts";
import { defaultStateDirectory } from "../flags/state_directory.ts";
import type { PROXY_FLAGS } from "./flags.ts";
import type { ConnectionDefaults } from "../../services/proxy/listeners/proxied_port.ts";
import type { FlagValues } from "../flags/flag.ts";
import type { FlagReading, GivenValues } from "../flags/read_flags.ts";
import {
  relayOptions,
  relayRefusal,
  WITHOUT_IDENTITY,
} from "../flags/relay_flags.ts";
import { given } from "../../platform/documents/given.ts";
import { listenAt } from "../flags/addresses.ts";

type Values = FlagValues<typeof PROXY_FLAGS>;

/** @throws {UsageError} One line. */
export function proxyOptions(
  reading: FlagReading<typeof PROXY_FLAGS>,
  context: CommandContext,
  log: Log,
  worker?: Pick<WorkerRole, "index">,
): NodeProxyOptions {
  const { values } = reading;
  const addresses = localAddresses(reading);
  const access = discoveryAccess(values, context);
  const identity = access?.kind === "joined"
    ? new FollowedIdentity(access, { log, environment: context.environment })
    : undefined;
  const logged = { ...context, log: () => log };
  const route = proxyRoute(reading, logged, access, identity);
  const { zone } = values;
  const node = values["node-name"] ||
    (access === undefined || access.kind === "plain" ? "" : access.node);
  const followed = discoveryClientConfig(reading, access, context, zone);
  const configs = catalogConfig(values, context, {
    flag: "--discovery",
    isGiven: followed !== undefined,
  });
  const discovery = followed && discoverySource(followed, {
    log,
    proxyEnv: proxyEnvironment(context.environment),
    ...(identity && { identity }),
  });
  const copies = keptAt("catalog", values["catalog-copies"], values, context);
  const path = keptAt("addresses", values["address-file"], values, context);
  const isOthers = worker !== undefined && worker.index > 0;
  const tools = { log, timers: systemTimers, isOthers };
  const addressFile = path === undefined
    ? undefined
    : openAddressFile(path, addresses, tools);
  return given({
    isShared: worker && true,
    sources: [
      ...openSources(configs, {
        log,
        ...given({ copies }),
      }),
      ...discovery ? [discovery] : [],
    ],
    discovery,
    addresses,
    addressFile,
    balance: values["balance"],
    zone: zone || undefined,
    node: node || undefined,
    route,
    identity,
    relay: relayed(values, route),
    earlyData: values["early-data"],
    dialTimeoutsMs: values["dial-timeouts"],
    udpIdleMs: values["udp-idle"],
    drainMs: values["service-drain"],
    defaults: connectionDefaults(values),
    dns: placeOf(
      "--dns-listen",
      values["dns-listen"],
      (host) => parseIpAddress(host) !== undefined,
      "an IP address and a port such as 127.0.0.1:5353",
    ),
    admin: adminAddress(values),
    adminAccess: proxyAdminAccess(values, context),
    ...accessLog(values, worker),
    audit: auditOptions(values, worker),
    drainTimeoutMs: values["drain-timeout"],
  });
}

/** The address of its health port. */
export function adminAddress(values: Values): ListenAddress {
  return listenAt(values, "admin-bind-address", "admin-port");
}

/**
 * The ways to its admin API, and the rights there. Tokens and the default
 * socket belong to the default port: another proxy of the machine would share
 * their place.
 *
 * @throws {UsageError} One line.
 */
export function proxyAdminAccess(
  values: Values,
  { environment }: Pick<CommandContext, "environment">,
): AdminAccess {
  const isUsual = values["admin-port"] === PROXY_ADMIN_PORT;
  return adminAccess(
    values,
    isUsual ? defaultStateDirectory("proxy", environment) : undefined,
  );
}

/** @throws {UsageError} One line. */
function relayed(
  values: Values,
  route: TunnelRoute | undefined,
): NodeProxyOptions["relay"] {
  const relay = relayOptions(values);
  if (relay === undefined) return undefined;
  if (route?.kind === "node") {
    const { addresses } = route;
    const servers = addresses.map((address) => ({
      name: hostPort(address.host, address.port),
      upstream: nodeUpstream({ ...route, addresses: [address] }),
    }));
    const upstream = nodeUpstream(route);
    return { ...relay, upstream, ...servers.length > 1 ? { servers } : {} };
  }
  if (route === undefined) throw relayRefusal(relay, WITHOUT_IDENTITY);
  throw relayRefusal(
    relay,
    "with a frontend: programs are passed on as this node, through the " +
      "server's port for agents; add --as-node",
  );
}

/**
 * The file that keeps something from one process to the next, if any: without a
 * fixed port of its own, a proxy would share the file with others.
 */
function keptAt(
  what: "addresses" | "catalog",
  text: string,
  values: Values,
  { environment }: Pick<CommandContext, "environment">,
): string | undefined {
  const admin = values["admin-port"];
  if (text === KEEPS_NOTHING || (text === "" && admin === 0)) return undefined;
  return text ||
    `${defaultStateDirectory("proxy", environment)}/${what}-${admin}`;
}

/** @throws {UsageError} One line. */
export function localAddresses(
  { values, given }: GivenValues<
    Pick<
      Values,
      "bind-address" | "local-addresses" | "port-range" | "virtual-range"
    >
  >,
): LocalAddresses {
  const kind = values["local-addresses"];
  const host = values["bind-address"];
  refuseFlags(
    MISPLACED[kind],
    (name) => given.has(name),
    `with --local-addresses=${kind}: it says nothing about those; remove it`,
  );
  if (parseIpAddress(host) === undefined) {
    throw unusable("--bind-address", host, "an IP address such as 127.0.0.1");
  }
  if (kind === "ports") return { kind, host, ...values["port-range"] };
  if (kind === "original") return { kind, host };
  const range = virtualRange(values["virtual-range"]);
  if (range !== undefined) return { kind, range };
  throw unusable(
    "--virtual-range",
    values["virtual-range"],
    "a prefix inside 127.0.0.0/8, such as 127.100.0.0/16",
  );
}

const MISPLACED = {
  "ports": ["virtual-range"],
  "original": ["virtual-range", "port-range"],
  "virtual-ips": ["port-range", "bind-address"],
} as const;

/** For the log, when services are open to other machines. */
export function exposureNotice(addresses: LocalAddresses): string | undefined {
  if (addresses.kind === "virtual-ips" || isLoopbackHost(addresses.host)) {
    return undefined;
  }
  return `services are served on ${addresses.host}: every client that ` +
    "reaches this machine reaches them without authentication";
}

/** Their meaning. */
function connectionDefaults(values: Values): ConnectionDefaults {
  return {
    onEndpointRemoved: values["on-endpoint-removed"],
    onEndpointDown: values["on-endpoint-down"],
    endpointDrainMs: values["endpoint-drain"],
    idleTimeoutMs: values["idle-timeout"],
    halfClosedTimeoutMs: values["half-closed-timeout"],
    userTimeoutMs: values["user-timeout"],
    ejection: {
      failures: values["ejection-failures"],
      timeMs: values["ejection-time"],
    },
  };
}
