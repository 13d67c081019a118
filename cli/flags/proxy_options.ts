/**
 * Flags of `tunnel proxy` to what it is told.
 *
 * @module
 */

import { AddressFile } from "../../agent/proxy/addresses/address_file.ts";
import {
  type LocalAddresses,
  numbersOf,
  virtualRange,
} from "../../agent/proxy/addresses/local_address.ts";
import type { NodeProxyOptions } from "../../agent/proxy/node_proxy.ts";
import { nodeRoad } from "../../client/call_road.ts";
import type { Road } from "../../client/road.ts";
import type { ListenAddress } from "../../net/listen/listeners.ts";
import type { Log } from "../../platform/log/log.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { isLoopbackHost, parseIpAddress } from "../../proto/peer/ip_address.ts";
import type { CommandContext } from "../command.ts";
import { UsageError } from "../usage_error.ts";
import { parseHostPort } from "./addresses.ts";
import { catalogSources } from "./catalog_sources.ts";
import {
  discoveryAccess,
  discoverySource,
} from "./discovery_client_options.ts";
import { KEEPS_NOTHING } from "./discovery_client_flags.ts";
import { proxyStateDirectory } from "./state_directory.ts";
import { connectionDefaults } from "./connection_flags.ts";
import type { FlagValues } from "./flag.ts";
import { followedIdentity } from "./followed_identity.ts";
import type { PROXY_FLAGS } from "./proxy_flags.ts";
import type { FlagReading } from "./read_flags.ts";
import { proxyRoad } from "./proxy_road.ts";
import { relayOptions, relayWithoutIdentity } from "./relay_flags.ts";

type Values = FlagValues<typeof PROXY_FLAGS>;

/** @throws {UsageError} One line. */
export function proxyOptions(
  reading: FlagReading<typeof PROXY_FLAGS>,
  context: CommandContext,
  log: Log,
): NodeProxyOptions {
  const { values } = reading;
  const addresses = localAddresses(reading);
  const access = discoveryAccess(values, context);
  const identity = access?.kind === "joined"
    ? followedIdentity(access, { log, environment: context.environment })
    : undefined;
  const road = proxyRoad(
    reading,
    { ...context, log: () => log },
    access,
    identity,
  );
  const { zone } = values;
  const node = values["node-name"] ||
    (access === undefined || access.kind === "plain" ? "" : access.node);
  const dns = dnsAddress(values["dns-listen"]);
  const discovery = discoverySource(reading, context, log, zone, identity);
  return {
    sources: catalogSources(values, context, log, {
      further: { flag: "--discovery", source: discovery },
      ...catalogCopies(values, context),
    }),
    ...(discovery === undefined ? {} : { discovery }),
    addresses,
    ...addressFile(values, addresses, context, log),
    balance: values["balance"],
    ...(zone === "" ? {} : { zone }),
    ...(node === "" ? {} : { node }),
    ...(road === undefined ? {} : { road }),
    ...(identity === undefined
      ? {}
      : { identityProblem: () => identity.problem }),
    ...relayed(values, road),
    dialTimeoutsMs: values["dial-timeouts"],
    udpIdleMs: values["udp-idle"],
    drainMs: values["service-drain"],
    defaults: connectionDefaults(values),
    ...(dns === undefined ? {} : { dns }),
    admin: {
      hostname: values["admin-bind-address"],
      port: values["admin-port"],
    },
    drainTimeoutMs: values["drain-timeout"],
  };
}

/** @throws {UsageError} One line. */
function relayed(
  values: Values,
  road: Road | undefined,
): Pick<NodeProxyOptions, "relay"> {
  const relay = relayOptions(values);
  if (relay === undefined) return {};
  if (road?.kind === "node") {
    return { relay: { ...relay, road: nodeRoad(road) } };
  }
  const flag = relay.xds === undefined ? "connect-listen" : "xds-listen";
  if (road === undefined) throw relayWithoutIdentity(flag);
  throw new UsageError(
    `Cannot use --${flag} with a frontend: programs are passed on as this ` +
      "node, through the server's port for agents; add --as-node",
  );
}

/** Where no port is the proxy's own, it would share them with others. */
function catalogCopies(
  values: Values,
  { environment }: Pick<CommandContext, "environment">,
): { readonly copies?: string } {
  const said = values["catalog-copies"];
  const admin = values["admin-port"];
  if (said === KEEPS_NOTHING || (said === "" && admin === 0)) return {};
  const usual = `${proxyStateDirectory(environment)}/catalog-${admin}`;
  return { copies: said || usual };
}

/** Where no port is the proxy's own, it would share its file with others. */
function addressFile(
  values: Values,
  addresses: LocalAddresses,
  { environment }: Pick<CommandContext, "environment">,
  log: Log,
): Pick<NodeProxyOptions, "addressFile"> {
  const range = numbersOf(addresses);
  const said = values["address-file"];
  const admin = values["admin-port"];
  const isNone = said === KEEPS_NOTHING || (said === "" && admin === 0);
  if (range === undefined || isNone) return {};
  const path = said ||
    `${proxyStateDirectory(environment)}/addresses-${admin}`;
  const timers = systemTimers;
  const { name, count } = range;
  return {
    addressFile: new AddressFile({ path, range: name, count, log, timers }),
  };
}

/** @throws {UsageError} One line. */
function dnsAddress(text: string): ListenAddress | undefined {
  if (text === "") return undefined;
  const { host, port } = parseHostPort("--dns-listen", text);
  if (parseIpAddress(host) !== undefined) return { hostname: host, port };
  throw new UsageError(
    `Cannot use --dns-listen: saw "${text}", wanted an IP address and a port ` +
      "such as 127.0.0.1:5353",
  );
}

/** @throws {UsageError} One line. */
export function localAddresses(
  { values, given }: {
    readonly values: Pick<
      Values,
      "bind-address" | "local-addresses" | "port-range" | "virtual-range"
    >;
    readonly given: ReadonlySet<string>;
  },
): LocalAddresses {
  const kind = values["local-addresses"];
  const host = values["bind-address"];
  const misplaced = MISPLACED[kind].find((name) => given.has(name));
  if (misplaced !== undefined) {
    throw new UsageError(
      `Cannot use --${misplaced} with --local-addresses=${kind}: it says ` +
        "nothing about those; remove it",
    );
  }
  if (parseIpAddress(host) === undefined) {
    throw new UsageError(
      `Cannot use --bind-address: saw "${host}", wanted an IP address such as ` +
        "127.0.0.1",
    );
  }
  if (kind === "ports") return { kind, host, ...values["port-range"] };
  if (kind === "original") return { kind, host };
  const range = virtualRange(values["virtual-range"]);
  if (range !== undefined) return { kind, range };
  throw new UsageError(
    `Cannot use --virtual-range: saw "${values["virtual-range"]}", wanted a ` +
      "prefix inside 127.0.0.0/8, such as 127.100.0.0/16",
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
  return `services are served on ${addresses.host}: whoever reaches this ` +
    "machine reaches them, and no one is asked who they are";
}
