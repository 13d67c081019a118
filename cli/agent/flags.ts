/**
 * The flags of `tunnel agent`: Konnectivity's proxy-agent, and ours.
 *
 * @module
 */

import { announceFlag } from "./announce.ts";
import { ACCESS_LOG_FLAGS, AUDIT_FLAGS } from "../flags/access_log_flags.ts";
import { AGENT_ADMIN_PORT } from "../flags/admin_flags.ts";
import {
  common,
  type Flag,
  flag,
  type FlagDetails,
  FlagValueError,
  type FlagValues,
  inGroup,
  type Tolerated,
} from "../flags/flag.ts";
import { AGENT_IDLE_FLAGS, KLOG_FLAGS } from "../flags/idle_flags.ts";
import {
  identifiersFlag,
  NODE_FLAGS,
  SERVER_FLAG,
} from "../flags/join_flags.ts";
import {
  ADMIN_ACCESS_FLAGS,
  GENERAL_FLAGS,
  HANDOVER_FLAGS,
  KUBERNETES,
  KUBERNETES_FLAGS,
  LOG_FLAGS,
  MESSAGE_SIZE_FLAG,
  PROFILING_FLAGS,
  WORKERS_FLAG,
} from "../flags/program_flags.ts";
import { RELAY_FLAGS } from "../flags/relay_flags.ts";
import { parseRule, type Rule, RuleError } from "../../policy/rule.ts";
import { type LabelledRule, RuleSet } from "../../policy/rule_set.ts";
import { unusablePairs } from "../../proto/peer/identifiers.ts";

/** Values of `--allow-preset`; empty: everything, unless rules are given. */
const ALLOW_PRESETS = ["", "all", "all-tcp", "loopback"] as const;

const SERVERS_FLAGS = inGroup("Servers (where to connect)", {
  "server": SERVER_FLAG,
  "proxy-server-host": common(flag.text("127.0.0.1", {
    placeholder: "HOST",
    help: "Name or address of the server, or of the load balancer in front " +
      "of all servers.",
  })),
  "proxy-server-port": common(
    flag.port(8091, "The server's port for agents."),
  ),
  "ca-cert": common(flag.file({
    help: "CA of the server's certificate, for agents that have not joined.",
  })),
  "agent-cert": common(flag.file("Certificate shown to the server.")),
  "agent-key": common(flag.file("Private key of --agent-cert.")),
  "alpn-proto": flag.list([], "ALPN names offered before h2."),
  "keepalive-time": flag.duration(4_000, 1, {
    help: "Send a PING to a server that has been silent for this long. The " +
      "server is lost when it does not answer within 1.4 times that, from " +
      "1s to 5.6s, or within four round trips. Servers of Konnectivity " +
      "accept a PING every 35s only, so the kernel probes them. " +
      "Konnectivity: 1h0m0s.",
  }),
  "links": flag.count(2, 1, 16, {
    help: "Connections to each server of ours. One is kept free of bulk " +
      "data as long as possible; more of them carry more over a network " +
      "that limits single connections.",
  }),
  "sync-interval": flag.duration(1000, 1, {
    help: "First wait before another attempt to connect. When it is given, " +
      "agents of a big fleet come back more slowly.",
    defaultText: "100ms at most",
  }),
  "sync-interval-cap": flag.duration(10_000, 1, {
    help: "Longest wait between attempts to find more servers. After a " +
      "failure the wait is at most 5s, or --sync-interval if that is " +
      "longer.",
  }),
  "sync-forever": flag.boolean(false, {
    help: "Look for more servers even when all announced ones are connected.",
  }),
  "learn-servers": flag.boolean(true, {
    help: "Also link to servers whose addresses a linked server tells. They " +
      "must show the certificate that is expected of --server.",
  }),
  "message-size-limit": MESSAGE_SIZE_FLAG,
});

const IDENTITY_FLAGS = inGroup("Identity (what this agent is and serves)", {
  "join": common(flag.word("TOKEN", {
    help: "Join with this token of tunnel token create. Not used once the " +
      "node has joined. -: read it from standard input.",
  })),
  ...NODE_FLAGS,
  "agent-id": common(flag.word("ID", {
    environment: ["PROXY_AGENT_ID"],
    help: "Name of this agent, which no other agent has.",
    defaultText: "$PROXY_AGENT_ID, the joined name or a random UUID",
  })),
  "agent-identifiers": common(identifiersFlag({
    aliases: ["identifiers"],
    placeholder: "QUERY",
    help: "What this agent serves, such as " +
      "host=node7&ipv4=10.0.0.7&default-route=true. " +
      "Keys: host, ipv4, ipv6, cidr, uid, default-route.",
    defaultText: "what a joined node was granted",
    tolerates: withoutUnusable,
  })),
});

const TARGETS_FLAGS = inGroup("Targets (what is dialed)", {
  "dial-timeout": flag.duration(5000, 1, "Limit on connecting to a target."),
  "allow": common(rulesFlag({
    help: "Allow dials to these targets, such as tcp:10.0.0.0/8:443, " +
      "udp:*:53, tcp:*.internal:* or unix:/run/app.sock. Repeat for " +
      "more.",
    defaultText: "tcp and udp to any target",
  })),
  "deny": common(rulesFlag({
    help: "Never allow dials to these targets, even if --allow does.",
  })),
  "allow-preset": flag.choice(ALLOW_PRESETS, "", {
    help: "Rules under one name, added to --allow: all (tcp and udp), " +
      "all-tcp, loopback (this machine only).",
    defaultText: "all, or none beside --allow",
  }),
  "allow-unix": flag.list([], {
    placeholder: "PATH",
    help: "Allow dials to this unix socket. Repeat for more.",
    defaultText: "none",
  }),
  "bench-target": flag.boolean(true, {
    help: "Answer tunnel bench, if --allow and --deny allow " +
      "tcp:bench.tunnel.invalid:7; at most 128 connections of 120 s.",
  }),
});

const SERVICES_FLAGS = inGroup("Services (what this node serves and uses)", {
  "announce": common(announceFlag({
    help: "Offer this service to others through the server's catalog: " +
      "NAME[.NAMESPACE][:PORT]=HOST:PORT[/udp], optionally with " +
      ",app=PROTOCOL, such as web:80=127.0.0.1:8080,app=http. The " +
      "service's own port is the target's unless it is given. Repeat " +
      "for more.",
  })),
  "proxy-config": common(flag.file({
    help: "Serve the services in this file on loopback ports, as tunnel " +
      "proxy does. The admin port shows them.",
  })),
});

const OPERATION_FLAGS = inGroup("Health, admin, shutdown", {
  "health-server-host": flag.bind(
    "Address for /healthz, /readyz and /metrics.",
  ),
  "health-server-port": common(
    flag.port(8093, "Port for /healthz, /readyz and /metrics."),
  ),
  "admin-bind-address": flag.bind(
    "Address of the admin endpoint.",
    "127.0.0.1",
  ),
  "admin-server-port": common(
    flag.port(AGENT_ADMIN_PORT, "Port of the admin endpoint."),
  ),
  ...ADMIN_ACCESS_FLAGS,
  "drain-timeout": flag.duration(30_000, 0, {
    help: "How long conduits may continue after SIGTERM. 0: end at once. " +
      "Konnectivity: forever.",
  }),
});

const KUBE_FLAGS = inGroup(KUBERNETES, {
  "service-account-token-path": flag.file({
    help:
      "Show the server the token in this file, which is read for each link.",
  }),
  "count-server-leases": flag.boolean(false, "Count servers by their leases."),
  "server-count-source": flag.choice(["default", "max", ""], "default", {
    help: "With leases: default counts leases only, max takes the larger of " +
      "their number and what servers report.",
  }),
  ...KUBERNETES_FLAGS,
  "lease-label-selector": flag.text("k8s-app=konnectivity-server", {
    aliases: ["lease-label"],
    placeholder: "SELECTOR",
    help: "Selector of the servers' leases.",
  }),
});

/** In the order in which the help shows them. */
export const AGENT_FLAGS = {
  ...SERVERS_FLAGS,

  ...IDENTITY_FLAGS,

  ...TARGETS_FLAGS,

  ...SERVICES_FLAGS,

  ...RELAY_FLAGS,

  ...OPERATION_FLAGS,

  ...AUDIT_FLAGS,
  ...ACCESS_LOG_FLAGS,
  ...WORKERS_FLAG,
  ...HANDOVER_FLAGS,
  ...GENERAL_FLAGS,
  ...LOG_FLAGS,

  ...KUBE_FLAGS,
  ...PROFILING_FLAGS,

  ...AGENT_IDLE_FLAGS,
  ...KLOG_FLAGS,
} as const;

function withoutUnusable(text: string): Tolerated | undefined {
  const unusable = unusablePairs(text);
  if (unusable.length === 0) return undefined;
  const usable = text.split("&").filter((pair) => !unusable.includes(pair));
  return {
    text: usable.join("&"),
    notice: `${unusable.join(", ")} is left out: it is no such address`,
  };
}

const PRESET_RULES: Readonly<
  Record<Exclude<typeof ALLOW_PRESETS[number], "">, readonly string[]>
> = {
  all: ["*:*:*"],
  "all-tcp": ["tcp:*:*"],
  loopback: ["*:127.0.0.0/8:*", "*:[::1]:*"],
};

/**
 * A list of rules. One text may hold several, as environment variables must:
 * a comma before `tcp:`, `udp:`, `unix:` or `*:` begins the next one, any other
 * comma is part of a list of ports.
 */
function rulesFlag(details: FlagDetails): Flag<readonly Rule[]> {
  return flag.parsedList((text) => {
    try {
      return text.split(/,\s*(?=(?:tcp|udp|unix|\*):)/i).map(parseRule);
    } catch (error) {
      if (!(error instanceof RuleError)) throw error;
      throw new FlagValueError(error.detail, true);
    }
  }, { placeholder: "RULE", ...details });
}

/** Flags that define together what may be dialed. */
export const RULE_FLAGS = ["allow", "deny", "allow-preset"] as const;

/**
 * What they mean together.
 *
 * @returns `undefined` when tcp and udp may go anywhere, which is the default.
 */
export function rulesOf(
  { allow, deny, "allow-preset": named }: FlagValues<
    Pick<typeof TARGETS_FLAGS, typeof RULE_FLAGS[number]>
  >,
): RuleSet | undefined {
  const preset = named === "" && allow.length === 0 ? "all" : named;
  if (preset === "all" && allow.length === 0 && deny.length === 0) {
    return undefined;
  }
  const label = (flag: string) => (rule: Rule): LabelledRule => ({
    rule,
    label: `${flag} ${rule.text}`,
  });
  const presets = preset === "" ? [] : PRESET_RULES[preset];
  return new RuleSet({
    allow: [
      ...allow.map(label("--allow")),
      ...presets.map((text) => ({
        rule: parseRule(text),
        label: `--allow-preset=${preset}`,
      })),
    ],
    deny: deny.map(label("--deny")),
  });
}
