/**
 * The flags of `tunnel agent`: Konnectivity's proxy-agent, and ours.
 *
 * @module
 */

import { announceFlag } from "./announce.ts";
import {
  AUDIT_FLAGS,
  KUBERNETES,
  KUBERNETES_FLAGS,
  messageSizeFlag,
  PROFILING_FLAGS,
} from "../flags/server_and_agent.ts";
import {
  booleanFlag,
  choiceFlag,
  countFlag,
  durationFlag,
  fileFlag,
  type Flag,
  type FlagDetails,
  FlagValueError,
  listFlag,
  parsedFlag,
  portFlag,
  textFlag,
} from "../flags/flag.ts";
import { HANDOVER_FLAGS } from "../flags/handover_flags.ts";
import { GENERAL_FLAGS, KLOG_FLAGS, LOG_FLAGS } from "../flags/log_flags.ts";
import { joinFileFlag, nodeFlags, serverFlag } from "../flags/join_flags.ts";
import { RELAY_FLAGS } from "../flags/relay_flags.ts";
import { ALLOW_PRESETS, rulesFlag } from "./rules.ts";
import {
  IdentifiersError,
  NO_IDENTIFIERS,
  parseIdentifiers,
} from "../../proto/peer/identifiers.ts";
import type { Identifiers } from "../../proto/peer/identifiers.ts";

const SERVERS = "Servers (where to connect)";
const IDENTITY = "Identity (what this agent is and serves)";
const TARGETS = "Targets (what is dialed)";
const SERVICES = "Services (what this node serves and uses)";
const OPERATION = "Health, admin, shutdown";
const IDLE = "Accepted for Konnectivity's sake (no effect)";

/** In the order in which the help shows them. */
export const AGENT_FLAGS = {
  "server": serverFlag(SERVERS),
  "proxy-server-host": textFlag("127.0.0.1", {
    group: SERVERS,
    placeholder: "HOST",
    help: "Name or address of the server, or of the load balancer before all.",
  }),
  "proxy-server-port": portFlag(8091, {
    group: SERVERS,
    help: "Its port for agents.",
  }),
  "ca-cert": fileFlag({
    group: SERVERS,
    help: "CA of the server's certificate, for agents that have not joined.",
  }),
  "agent-cert": fileFlag({
    group: SERVERS,
    help: "Certificate shown to the server.",
  }),
  "agent-key": fileFlag({ group: SERVERS, help: "Its private key." }),
  "alpn-proto": listFlag([], {
    group: SERVERS,
    help: "ALPN names offered before h2.",
  }),
  "keepalive-time": durationFlag(4_000, 1, {
    group: SERVERS,
    help: "PING a server after this long without a sign of life; it is gone " +
      "when it leaves that unanswered for 6s. Over Konnectivity's protocol " +
      "both are 10s at least. Konnectivity: 1h0m0s.",
  }),
  "links": countFlag(2, 1, 16, {
    group: SERVERS,
    help: "Connections to each server of ours. One is kept free of bulk as " +
      "long as possible; more carry more over a network that limits single " +
      "connections.",
  }),
  "sync-interval": durationFlag(1000, 1, {
    group: SERVERS,
    help: "First wait before another attempt to connect, when it is given: " +
      "agents of a big fleet then come back more slowly.",
    defaultText: "100ms at most",
  }),
  "sync-interval-cap": durationFlag(10_000, 1, {
    group: SERVERS,
    help: "Longest wait between attempts to find more servers. After a " +
      "failure it is 5s at most, or --sync-interval if that is more.",
  }),
  "sync-forever": booleanFlag(false, {
    group: SERVERS,
    help: "Look for more servers even when all that were announced are there.",
  }),
  "message-size-limit": messageSizeFlag(SERVERS),

  "join": textFlag("", {
    group: IDENTITY,
    placeholder: "TOKEN",
    help: "Join with this line of tunnel token create. Not needed nor used " +
      "once the node has joined. -: from standard input.",
  }),
  "join-file": joinFileFlag(IDENTITY),
  ...nodeFlags(IDENTITY),
  "agent-id": textFlag("", {
    group: IDENTITY,
    placeholder: "ID",
    environment: ["PROXY_AGENT_ID"],
    help: "Name of this agent, unique among all.",
    defaultText: "$PROXY_AGENT_ID, the joined name or a random UUID",
  }),
  "agent-identifiers": identifiersFlag({
    group: IDENTITY,
    aliases: ["identifiers"],
    placeholder: "QUERY",
    help: "What this agent serves, such as " +
      "host=node7&ipv4=10.0.0.7&default-route=true. " +
      "Keys: host, ipv4, ipv6, cidr, uid, default-route.",
    defaultText: "what a joined node was granted",
  }),

  "dial-timeout": durationFlag(5000, 1, {
    group: TARGETS,
    help: "Limit on connecting to a target.",
  }),
  "allow": rulesFlag({
    group: TARGETS,
    help: "Let these targets be dialed, such as tcp:10.0.0.0/8:443, " +
      "udp:*:53, tcp:*.internal:* or unix:/run/app.sock. Repeat for more.",
    defaultText: "tcp and udp to any target",
  }),
  "deny": rulesFlag({
    group: TARGETS,
    help: "Never let these be dialed, whatever is allowed.",
  }),
  "allow-preset": choiceFlag(ALLOW_PRESETS, "", {
    group: TARGETS,
    help: "Rules by one name, added to --allow: all (tcp and udp), all-tcp, " +
      "loopback (this machine only).",
    defaultText: "all, or none beside --allow",
  }),
  "allow-unix": listFlag([], {
    group: TARGETS,
    placeholder: "PATH",
    help: "Let this unix socket be dialed. Repeat for more.",
    defaultText: "none",
  }),
  "bench-target": booleanFlag(true, {
    group: TARGETS,
    help: "Answer tunnel bench, where --allow and --deny let somebody dial " +
      "tcp:bench.tunnel.invalid:7; 128 connections of 120 s at most.",
  }),

  "announce": announceFlag({
    group: SERVICES,
    help: "Let others reach this through the server's catalog: " +
      "NAME[.NAMESPACE][:PORT]=HOST:PORT[/udp] and maybe ,app=PROTOCOL, such " +
      "as web:80=127.0.0.1:8080,app=http. The service's own port is that of the " +
      "target unless it is given. Repeat for more.",
  }),
  "proxy-config": fileFlag({
    group: SERVICES,
    help: "Serve the services in this file on ports of loopback, as tunnel " +
      "proxy does. They are shown on the admin port.",
  }),

  ...RELAY_FLAGS,

  "health-server-host": textFlag("", {
    group: OPERATION,
    placeholder: "ADDRESS",
    help: "Address for /healthz, /readyz and /metrics.",
    defaultText: "all interfaces",
  }),
  "health-server-port": portFlag(8093, {
    group: OPERATION,
    help: "Their port.",
  }),
  "admin-bind-address": textFlag("127.0.0.1", {
    group: OPERATION,
    placeholder: "ADDRESS",
    help: "Address of the admin endpoint.",
  }),
  "admin-server-port": portFlag(8094, { group: OPERATION, help: "Its port." }),
  "drain-timeout": durationFlag(30_000, 0, {
    group: OPERATION,
    help: "How long conduits may go on after SIGTERM. 0: end at once. " +
      "Konnectivity: for ever.",
  }),

  ...AUDIT_FLAGS,
  ...HANDOVER_FLAGS,
  ...GENERAL_FLAGS,
  ...LOG_FLAGS,

  "service-account-token-path": fileFlag({
    group: KUBERNETES,
    help: "Show the server the token in this file. It is read for each link.",
  }),
  "count-server-leases": booleanFlag(false, {
    group: KUBERNETES,
    help: "Learn from their leases how many servers there are.",
  }),
  "server-count-source": choiceFlag(["default", "max", ""], "default", {
    group: KUBERNETES,
    help: "With leases: default counts leases only, max believes the larger " +
      "of their number and what servers say.",
  }),
  ...KUBERNETES_FLAGS,
  "lease-label-selector": textFlag("k8s-app=konnectivity-server", {
    group: KUBERNETES,
    aliases: ["lease-label"],
    placeholder: "SELECTOR",
    help: "Which leases are servers'.",
  }),
  ...PROFILING_FLAGS,

  "probe-interval": durationFlag(1000, 1, {
    group: IDLE,
    help: "How often to look whether a link is up.",
    status: { kind: "idle", because: "a lost link is noticed at once" },
  }),
  "xfr-channel-size": countFlag(150, 1, 1_000_000, {
    group: IDLE,
    help: "Packets per connection and direction.",
    status: { kind: "idle", because: "queues are bounded in bytes" },
  }),
  "warn-on-channel-limit": booleanFlag(false, {
    group: IDLE,
    help: "Log when a channel is full.",
    status: { kind: "idle", because: "queues are bounded in bytes" },
  }),
  ...KLOG_FLAGS,
} as const;

/** A URL query of what an agent serves. */
export function identifiersFlag(details: FlagDetails): Flag<Identifiers> {
  return parsedFlag(NO_IDENTIFIERS, (text) => {
    try {
      return parseIdentifiers(text, "flag");
    } catch (error) {
      if (!(error instanceof IdentifiersError)) throw error;
      throw new FlagValueError(
        `wanted key=value pairs joined by &. ${error.message}`,
      );
    }
  }, details);
}
