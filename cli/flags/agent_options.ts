/**
 * Flags of `tunnel agent` to {@linkcode AgentOptions}: the rules that concern
 * more than one flag.
 *
 * @module
 */

import type { AgentOptions } from "../../agent/options.ts";
import { UsageError } from "../usage_error.ts";
import type { AGENT_FLAGS } from "./agent_flags.ts";
import { auditOptions } from "./audit_flags.ts";
import { formatGoDuration } from "./go_values.ts";
import { keyPair } from "./key_pair.ts";
import { agentLeases } from "./kubernetes_options.ts";
import type { FlagReading } from "./read_flags.ts";
import { agentRules } from "./rules_flag.ts";

/**
 * Combines and checks.
 *
 * @param newId Makes an id when none was given.
 * @throws {UsageError} One line.
 */
export function agentOptions(
  { values: flags }: FlagReading<typeof AGENT_FLAGS>,
  newId: () => string,
): AgentOptions {
  if (flags["ca-cert"] === "") {
    throw new UsageError(
      "Cannot tell a true server from a false one: --ca-cert is not given; " +
        "give the CA file that the server's certificate was signed with",
    );
  }
  if (flags["proxy-server-port"] === 0) {
    throw new UsageError(
      "Cannot use --proxy-server-port=0: a server to connect to has a port; " +
        "give the one that the server printed",
    );
  }
  const intervalMs = flags["sync-interval"];
  const intervalCapMs = flags["sync-interval-cap"];
  if (intervalMs > intervalCapMs) {
    throw new UsageError(
      `Cannot use --sync-interval=${formatGoDuration(intervalMs)}: it is ` +
        `more than --sync-interval-cap=${formatGoDuration(intervalCapMs)}; ` +
        "raise the cap",
    );
  }
  const pair = keyPair(
    "agent-cert",
    flags["agent-cert"],
    "agent-key",
    flags["agent-key"],
  );
  const tokenFile = flags["service-account-token-path"];
  const leases = agentLeases(flags);
  return {
    agentId: flags["agent-id"] || newId(),
    identifiers: flags["agent-identifiers"],
    server: {
      host: flags["proxy-server-host"],
      port: flags["proxy-server-port"],
      caFile: flags["ca-cert"],
      ...(pair === undefined ? {} : { keyPair: pair }),
      ...(tokenFile === "" ? {} : { tokenFile }),
      alpnProtocols: flags["alpn-proto"],
      links: flags["links"],
      keepaliveMs: flags["keepalive-time"],
    },
    sync: { intervalMs, intervalCapMs, forever: flags["sync-forever"] },
    ...(leases === undefined ? {} : { leases }),
    dials: dials(flags),
    ...audited(flags),
    drainTimeoutMs: flags["drain-timeout"],
    health: {
      hostname: flags["health-server-host"],
      port: flags["health-server-port"],
    },
    admin: {
      hostname: flags["admin-bind-address"],
      port: flags["admin-server-port"],
    },
    messageOctetsMax: flags["message-size-limit"],
  };
}

function audited(
  flags: FlagReading<typeof AGENT_FLAGS>["values"],
): Pick<AgentOptions, "audit"> {
  const audit = auditOptions(flags);
  return audit === undefined ? {} : { audit };
}

function dials(
  flags: FlagReading<typeof AGENT_FLAGS>["values"],
): AgentOptions["dials"] {
  const relative = flags["allow-unix"].find((path) => !/^[/@]/.test(path));
  if (relative !== undefined) {
    throw new UsageError(
      `Cannot use --allow-unix: saw "${relative}", wanted an absolute path`,
    );
  }
  const rules = agentRules({
    allow: flags["allow"],
    deny: flags["deny"],
    preset: flags["allow-preset"],
  });
  return {
    timeoutMs: flags["dial-timeout"],
    ...(rules === undefined ? {} : { rules }),
    allowUnix: flags["allow-unix"],
    hasBenchTarget: flags["bench-target"],
  };
}
