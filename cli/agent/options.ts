/**
 * Flags of `tunnel agent` to {@linkcode AgentOptions}: the rules that concern
 * more than one flag.
 *
 * @module
 */

import { hasJoined } from "../../agent/identity/agent_state.ts";
import type { AgentOptions } from "../../agent/options.ts";
import type { RuleSet } from "../../policy/rule_set.ts";
import { adminAccess } from "../flags/admin_access_flags.ts";
import { unusable, UsageError } from "../flags/usage_error.ts";
import { belonging } from "./identity.ts";
import { announcedServices } from "./announce.ts";
import type { AGENT_FLAGS } from "./flags.ts";
import type { WorkerRole } from "../program/workers/worker_words.ts";
import { accessLog } from "../flags/access_log_flags.ts";
import { auditOptions, kubeconfigOf } from "../flags/server_and_agent.ts";
import { formatGoDuration } from "../../platform/documents/go_duration.ts";
import type { LeaseCountOptions } from "../../agent/options.ts";
import type { FlagReading } from "../flags/read_flags.ts";
import { relayOptions, relayWithoutIdentity } from "../flags/relay_flags.ts";
import { agentRules } from "./rules.ts";

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
  const { values: flags, given } = reading;
  if (flags["proxy-server-port"] === 0) {
    throw new UsageError(
      "Cannot use --proxy-server-port=0: a server to connect to has a port; " +
        "give the one that the server printed",
    );
  }
  const { identity, ...server } = belonging(reading, stateDirectory, joined);
  const intervalMs = flags["sync-interval"];
  const intervalCapMs = flags["sync-interval-cap"];
  if (intervalMs > intervalCapMs) {
    throw new UsageError(
      `Cannot use --sync-interval=${formatGoDuration(intervalMs)}: it is ` +
        `more than --sync-interval-cap=${formatGoDuration(intervalCapMs)}; ` +
        "raise the cap",
    );
  }
  const tokenFile = flags["service-account-token-path"];
  const leases = leasesOf(flags);
  return {
    agentId: flags["agent-id"] || (identity === undefined ? newId() : ""),
    ...(identity === undefined ? {} : { identity }),
    ...(identity === undefined || given.has("agent-identifiers")
      ? { identifiers: flags["agent-identifiers"] }
      : {}),
    server: {
      ...server,
      ...(tokenFile === "" ? {} : { tokenFile }),
      alpnProtocols: flags["alpn-proto"],
      links: flags["links"],
      keepaliveMs: flags["keepalive-time"],
    },
    sync: {
      // Its default is Konnectivity's; ours is to be back as soon as can be.
      ...(given.has("sync-interval") ? { intervalMs } : {}),
      intervalCapMs,
      forever: flags["sync-forever"],
      ...(flags["learn-servers"] ? {} : { learnsServers: false }),
    },
    ...(leases === undefined ? {} : { leases }),
    dials: dials(flags),
    ...announced(flags),
    ...forNode(flags, identity !== undefined || server.keyPair !== undefined, {
      stateDirectory,
      worker,
    }),
    ...audited(flags, worker),
    ...accessLog(flags, worker),
    ...(worker === undefined ? {} : { instanceId: instanceIdOf(worker) }),
    drainTimeoutMs: flags["drain-timeout"],
    health: {
      hostname: flags["health-server-host"],
      port: flags["health-server-port"],
    },
    admin: {
      hostname: flags["admin-bind-address"],
      port: flags["admin-server-port"],
    },
    ...admin(flags),
    ...(flags["enable-profiling"] ? { profiling: true } : {}),
    messageBytesMax: flags["message-size-limit"],
  };
}

/** An agent that has joined keeps its tokens with its identity. */
function admin(
  flags: FlagReading<typeof AGENT_FLAGS>["values"],
): Pick<AgentOptions, "adminAccess"> {
  const access = adminAccess(flags, flags["state-dir"] || undefined);
  return Object.keys(access).length === 0 ? {} : { adminAccess: access };
}

function announced(
  flags: FlagReading<typeof AGENT_FLAGS>["values"],
): Pick<AgentOptions, "services"> {
  const services = announcedServices(flags["announce"]);
  return services.length === 0 ? {} : { services };
}

function relayed(
  flags: FlagReading<typeof AGENT_FLAGS>["values"],
  hasIdentity: boolean,
): Pick<AgentOptions, "relay"> {
  const relay = relayOptions(flags);
  if (relay === undefined) return {};
  if (hasIdentity) return { relay };
  throw relayWithoutIdentity(
    relay.xds === undefined ? "connect-listen" : "xds-listen",
  );
}

function audited(
  flags: FlagReading<typeof AGENT_FLAGS>["values"],
  worker: WorkerRole | undefined,
): Pick<AgentOptions, "audit"> {
  const audit = auditOptions(flags, worker);
  return audit === undefined ? {} : { audit };
}

/** What programs on the node are served; the first worker does. */
function forNode(
  flags: FlagReading<typeof AGENT_FLAGS>["values"],
  hasIdentity: boolean,
  { stateDirectory, worker }: {
    readonly stateDirectory: string;
    readonly worker: WorkerRole | undefined;
  },
): Pick<AgentOptions, "relay" | "servicesFile" | "addressFile"> {
  const relay = relayed(flags, hasIdentity);
  if (worker !== undefined && worker.index > 0) return {};
  if (flags["proxy-config"] === "") return relay;
  return {
    ...relay,
    servicesFile: flags["proxy-config"],
    // Beside the agent's directory, which holds nothing else.
    addressFile: `${stateDirectory.replace(/\/+$/, "")}-proxy-addresses`,
  };
}

/** Servers see one agent, not duplicates. */
function instanceIdOf({ id }: WorkerRole): string {
  return id.replaceAll("-", "");
}

/** Flags that define together what may be dialed. */
export const RULE_FLAGS = ["allow", "deny", "allow-preset"] as const;

/** The rules of {@linkcode RULE_FLAGS}; see `agentRules`. */
export function rulesOf(
  flags: Pick<
    FlagReading<typeof AGENT_FLAGS>["values"],
    (typeof RULE_FLAGS)[number]
  >,
): RuleSet | undefined {
  return agentRules({
    allow: flags["allow"],
    deny: flags["deny"],
    preset: flags["allow-preset"],
  });
}

function dials(
  flags: FlagReading<typeof AGENT_FLAGS>["values"],
): AgentOptions["dials"] {
  const relative = flags["allow-unix"].find((path) => !/^[/@]/.test(path));
  if (relative !== undefined) {
    throw unusable("--allow-unix", relative, "an absolute path");
  }
  const rules = rulesOf(flags);
  return {
    timeoutMs: flags["dial-timeout"],
    ...(rules === undefined ? {} : { rules }),
    allowUnix: flags["allow-unix"],
    hasBenchTarget: flags["bench-target"],
  };
}

/** How servers are counted by their leases; absent: not at all. */
function leasesOf(
  flags: FlagReading<typeof AGENT_FLAGS>["values"],
): LeaseCountOptions | undefined {
  if (!flags["count-server-leases"]) return undefined;
  return {
    ...kubeconfigOf(flags),
    namespace: flags["lease-namespace"],
    labelSelector: flags["lease-label-selector"],
    source: flags["server-count-source"] === "max" ? "max" : "leases",
  };
}
