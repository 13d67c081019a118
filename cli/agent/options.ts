/**
 * Flags of `tunnel agent` to {@linkcode AgentOptions}: the identity that it shows
 * to servers, and those servers, from files or from what the node has joined with;
 * and the rules that concern more than one flag.
 *
 * @module
 */

import type { ServerAddress } from "../../net/dial/server_addresses.ts";
import { hasJoined } from "../../agent/identity/agent_state.ts";
import { adminAccess, kubeconfigOf } from "../flags/program_flags.ts";
import { anyGiven, given } from "../../platform/documents/given.ts";
import { listenAt } from "../flags/addresses.ts";
import {
  keyPair,
  refuseFlags,
  unusable,
  UsageError,
} from "../flags/usage_error.ts";
import { announcedServices } from "./announce.ts";
import { type AGENT_FLAGS, rulesOf } from "./flags.ts";
import type { WorkerRole } from "../program/workers/worker_words.ts";
import { accessLog, auditOptions } from "../flags/access_log_flags.ts";
import { formatGoDuration } from "../../platform/documents/go_duration.ts";
import type {
  AgentIdentityOptions,
  AgentOptions,
  LeaseCountOptions,
} from "../../agent/options.ts";
import type { FlagReading } from "../flags/read_flags.ts";
import {
  relayOptions,
  relayRefusal,
  WITHOUT_IDENTITY,
} from "../flags/relay_flags.ts";
import {
  joinRequest,
  joinTokenText,
  nodeName,
  serverAddresses,
} from "../flags/join_flags.ts";

/**
 * Combines and checks.
 *
 * @param newId Makes an id when none was given and the node has not joined.
 * @param stateDirectory Where the agent keeps its identity by default.
 * @param joined Whether there is an identity in a directory.
 * @throws {UsageError} One line.
 */
export function agentOptions(
  reading: FlagReading<typeof AGENT_FLAGS>,
  newId: () => string,
  stateDirectory: string,
  worker?: WorkerRole,
  joined: (directory: string) => boolean = hasJoined,
): AgentOptions {
  const { values: flags, given: named } = reading;
  if (flags["proxy-server-port"] === 0) {
    throw new UsageError(
      "Cannot use --proxy-server-port=0: a server to connect to has a port; " +
        "give the one that the server printed",
    );
  }
  const { identity, ...server } = belonging(reading, stateDirectory, joined);
  const hasIdentity = identity !== undefined;
  const relay = relayed(flags, hasIdentity || server.keyPair !== undefined);
  const announced = announcedServices(flags["announce"]);
  // What programs on the node are served, the first worker does.
  const isFirst = worker === undefined || worker.index === 0;
  const servicesFile = isFirst ? flags["proxy-config"] : "";
  return given({
    agentId: flags["agent-id"] || (hasIdentity ? "" : newId()),
    identity,
    identifiers: !hasIdentity || named.has("agent-identifiers")
      ? flags["agent-identifiers"]
      : undefined,
    server: given({
      ...server,
      tokenFile: flags["service-account-token-path"] || undefined,
      alpnProtocols: flags["alpn-proto"],
      links: flags["links"],
      keepaliveMs: flags["keepalive-time"],
    }),
    sync: syncOptions(reading),
    leases: leasesOf(flags),
    dials: dials(flags),
    services: announced.length === 0 ? undefined : announced,
    relay: isFirst ? relay : undefined,
    servicesFile: servicesFile || undefined,
    // Beside the agent's directory, because that must contain no other files.
    addressFile: servicesFile === ""
      ? undefined
      : `${stateDirectory.replace(/\/+$/, "")}-proxy-addresses`,
    audit: auditOptions(flags, worker),
    ...accessLog(flags, worker),
    // Servers see one agent, not duplicates.
    instanceId: worker?.id.replaceAll("-", ""),
    drainTimeoutMs: flags["drain-timeout"],
    health: listenAt(flags, "health-server-host", "health-server-port"),
    admin: listenAt(flags, "admin-bind-address", "admin-server-port"),
    // An agent that has joined keeps its tokens with its identity.
    adminAccess: anyGiven(adminAccess(flags, flags["state-dir"] || undefined)),
    profiling: flags["enable-profiling"] || undefined,
    messageBytesMax: flags["message-size-limit"],
  });
}

type Values = FlagReading<typeof AGENT_FLAGS>["values"];

/** How servers are looked for. */
function syncOptions(
  { values: flags, given: named }: FlagReading<typeof AGENT_FLAGS>,
): AgentOptions["sync"] {
  const intervalMs = flags["sync-interval"];
  const intervalCapMs = flags["sync-interval-cap"];
  if (intervalMs > intervalCapMs) {
    throw new UsageError(
      `Cannot use --sync-interval=${formatGoDuration(intervalMs)}: it is ` +
        `more than --sync-interval-cap=${formatGoDuration(intervalCapMs)}; ` +
        "raise the cap",
    );
  }
  return given({
    // Its default is Konnectivity's; ours is to be back as soon as can be.
    intervalMs: named.has("sync-interval") ? intervalMs : undefined,
    intervalCapMs,
    forever: flags["sync-forever"],
    learnsServers: flags["learn-servers"] ? undefined : false,
  });
}

function relayed(flags: Values, hasIdentity: boolean): AgentOptions["relay"] {
  const relay = relayOptions(flags);
  if (relay === undefined || hasIdentity) return relay;
  throw relayRefusal(relay, WITHOUT_IDENTITY);
}

function dials(flags: Values): AgentOptions["dials"] {
  const relative = flags["allow-unix"].find((path) => !/^[/@]/.test(path));
  if (relative !== undefined) {
    throw unusable("--allow-unix", relative, "an absolute path");
  }
  const rules = rulesOf(flags);
  return given({
    timeoutMs: flags["dial-timeout"],
    rules: rules && (() => rules),
    allowUnix: flags["allow-unix"],
    hasBenchTarget: flags["bench-target"],
  });
}

/** How servers are counted by their leases; absent: not at all. */
function leasesOf(flags: Values): LeaseCountOptions | undefined {
  if (!flags["count-server-leases"]) return undefined;
  return {
    ...kubeconfigOf(flags),
    namespace: flags["lease-namespace"],
    labelSelector: flags["lease-label-selector"],
    source: flags["server-count-source"] === "max" ? "max" : "leases",
  };
}

type Reading = FlagReading<typeof AGENT_FLAGS>;

/** The agent's identity and its servers. */
export type Belonging =
  & Pick<AgentOptions, "identity">
  & Pick<AgentOptions["server"], "addresses" | "caFile" | "keyPair">;

/**
 * Files win over a joined identity; a token is used only without either.
 *
 * @param stateDirectory Where an agent keeps its identity by default.
 * @throws {UsageError} One line.
 */
export function belonging(
  { values: flags, given }: Reading,
  stateDirectory: string,
  joined: (directory: string) => boolean,
): Belonging {
  const caFile = flags["ca-cert"];
  const pair = keyPair(flags, "agent-cert", "agent-key");
  const addresses = addressesOf({ values: flags, given });
  if (caFile !== "") {
    refuseFlags(
      ["join", "join-file", "node", "state-dir"],
      (name) => given.has(name),
      "together with --ca-cert: a node that joins trusts the server's own " +
        "CA; give one of them",
    );
    return {
      addresses: addresses ?? [usual(flags)],
      caFile,
      ...(pair && { keyPair: pair }),
    };
  }
  const identity = identityOf(flags, stateDirectory, joined);
  if (identity === undefined || pair !== undefined) {
    throw new UsageError(
      "Cannot verify the server: --ca-cert is not given" +
        (pair === undefined
          ? `, and there is no identity in ${
            flags["state-dir"] || stateDirectory
          }; join with --join and a token of \`tunnel token create\`, or give`
          : "; give") +
        " the CA file that the server's certificate was signed with",
      "TUN309",
    );
  }
  if (identity.token !== undefined && addresses === undefined) {
    throw new UsageError(
      "Cannot join: --server is not given; `tunnel token create` on the " +
        "server says where it is",
    );
  }
  return { identity, addresses: addresses ?? [], caFile };
}

function identityOf(
  flags: Reading["values"],
  fallback: string,
  joined: (directory: string) => boolean,
): AgentIdentityOptions | undefined {
  const stateDirectory = flags["state-dir"] || fallback;
  const node = nodeName(flags["node"]);
  if (joined(stateDirectory)) {
    return { stateDirectory, node };
  }
  const token = joinTokenText(flags["join"], flags["join-file"]);
  if (token === "") return undefined;
  return { stateDirectory, ...joinRequest(token, flags["node"]) };
}

/**
 * @returns `undefined` when no flag names a server.
 * @throws {UsageError} When flags name it in two ways.
 */
export function addressesOf(
  { values: flags, given }: Pick<Reading, "values" | "given">,
): Belonging["addresses"] | undefined {
  const konnectivitys = ["proxy-server-host", "proxy-server-port"]
    .find((name) => given.has(name));
  const addresses = serverAddresses(flags["server"]);
  if (konnectivitys === undefined) {
    return addresses.length === 0 ? undefined : addresses;
  }
  if (addresses.length > 0) {
    throw new UsageError(
      `Cannot use --server together with --${konnectivitys}: both say where ` +
        "the server is; give one of them",
    );
  }
  return [usual(flags)];
}

/** The address in Konnectivity's flags. */
export function usual(flags: Reading["values"]): ServerAddress {
  return {
    host: flags["proxy-server-host"],
    port: flags["proxy-server-port"],
  };
}
