/**
 * The flags of `tunnel server`: Konnectivity's proxy-server, and ours.
 *
 * Where a default differs from Konnectivity's, the sentence ends with theirs.
 *
 * @module
 */

import { NODES_MAX } from "../../server/metrics/node_metrics.ts";
import { ADMIN_REMOTE_FLAGS } from "./admin_remote.ts";
import { ADMIN_ACCESS_FLAGS } from "../flags/admin_access_flags.ts";
import { ACCESS_LOG_FLAGS } from "../flags/access_log_flags.ts";
import {
  AUDIT_FLAGS,
  messageSizeFlag,
  SERVER_ADMIN_PORT,
} from "../flags/server_and_agent.ts";
import {
  booleanFlag,
  choiceFlag,
  choicesFlag,
  countFlag,
  durationFlag,
  fileFlag,
  listFlag,
  portFlag,
  textFlag,
} from "../flags/flag.ts";
import { DISCOVERY_FLAGS } from "./discovery.ts";
import { PEER_FLAGS } from "./peers.ts";
import { KUBELET_FLAGS } from "./kubelet.ts";
import { SERVER_KUBERNETES_FLAGS } from "./kubernetes.ts";
import { HANDOVER_FLAGS, WORKERS_FLAG } from "../flags/handover_flags.ts";
import { GENERAL_FLAGS, KLOG_FLAGS, LOG_FLAGS } from "../flags/log_flags.ts";
import { stateDirectoryFlag } from "../flags/state_directory.ts";
import { stateFlags } from "../flags/state_flags.ts";
import { SOURCE_LIMITS_DEFAULT } from "../../net/admission/connection_limits.ts";

/** Seven days: a node that is off for longer renews by proof of its key. */
const NODE_CERTIFICATE_LIFE_MS = 7 * 24 * 3600_000;

const FRONTENDS = "Frontends (callers)";
const AGENTS = "Agents";
const IDENTITY = "Identity of agents";
const ROUTING = "Choosing an agent";
const TLS = "TLS";
const OPERATION = "Health, admin, shutdown";
const LIMITS = "Limits on peers";

/** More connections than any machine has. */
const PEERS_MAX = 10_000_000;

/** In the order in which the help shows them. */
export const SERVER_FLAGS = {
  "mode": choiceFlag(["auto", "grpc", "http-connect"], "auto", {
    group: FRONTENDS,
    help: "Protocol that frontends speak. auto tells gRPC and HTTP CONNECT " +
      "apart by the first bytes. Konnectivity: grpc.",
  }),
  "uds-name": textFlag("", {
    isCommon: true,
    group: FRONTENDS,
    placeholder: "PATH",
    help: "Listen on this unix socket instead of a port. Without any flag " +
      "for frontends the server listens on frontend.sock in " +
      "--state-dir.",
  }),
  "delete-existing-uds-file": booleanFlag(true, {
    group: FRONTENDS,
    help: "Remove an existing socket file first.",
  }),
  "server-bind-address": textFlag("", {
    group: FRONTENDS,
    placeholder: "ADDRESS",
    help: "Address for frontends.",
    defaultText: "all interfaces",
  }),
  "server-port": portFlag(8090, {
    isCommon: true,
    group: FRONTENDS,
    help: "Port for frontends; 0 picks a free one. Not used with --uds-name.",
  }),
  "server-cert": fileFlag({
    isCommon: true,
    group: FRONTENDS,
    help: "Certificate shown to frontends.",
  }),
  "server-key": fileFlag({
    isCommon: true,
    group: FRONTENDS,
    help: "Private key of --server-cert.",
  }),
  "server-ca-cert": fileFlag({
    isCommon: true,
    group: FRONTENDS,
    help: "CA of the certificates that frontends must show.",
  }),
  "frontend-keepalive-time": durationFlag(3_600_000, 1, {
    group: FRONTENDS,
    help: "Send a PING to a frontend that has been silent for this long.",
  }),
  "connect-early-200": booleanFlag(false, {
    group: FRONTENDS,
    help: "Answer CONNECT with 200 before the target has answered. This " +
      "saves a round trip, but a dial that fails afterwards resets the " +
      "caller without a reason.",
  }),

  "policy-file": fileFlag({
    isCommon: true,
    group: FRONTENDS,
    help: "Rules about which frontends may reach which nodes and targets, " +
      "and which addresses nodes may claim (.yaml or .json; " +
      "docs/policy.md).",
    defaultText: "every frontend may reach everything",
  }),

  "agent-bind-address": textFlag("", {
    isCommon: true,
    group: AGENTS,
    placeholder: "ADDRESS",
    help: "Address for agents.",
    defaultText: "all interfaces",
  }),
  "agent-port": portFlag(8091, {
    isCommon: true,
    group: AGENTS,
    help: "Port for agents; 0 picks a free one.",
  }),
  "cluster-cert": fileFlag({
    isCommon: true,
    group: AGENTS,
    help: "Certificate shown to agents. Without it the server has a CA of " +
      "its own, and agents join with tokens.",
  }),
  "cluster-key": fileFlag({
    isCommon: true,
    group: AGENTS,
    help: "Private key of --cluster-cert.",
  }),
  "cluster-ca-cert": fileFlag({
    isCommon: true,
    group: AGENTS,
    help: "CA of the certificates that agents must show.",
  }),
  "allow-anonymous-agents": booleanFlag(false, {
    group: AGENTS,
    help: "Let agents register without a certificate. Anyone who reaches " +
      "the port may then take any name that no joined node has, and " +
      "gets its connections. Needed with --cluster-cert and without " +
      "--cluster-ca-cert, unless agents connect on loopback only. " +
      "Konnectivity: always.",
  }),
  "alpn-proto": listFlag([], {
    group: AGENTS,
    help: "ALPN names of agents that mean h2, besides h2 itself.",
  }),
  "keepalive-time": durationFlag(4_000, 1, {
    group: AGENTS,
    help: "Send a PING to an agent that has been silent for this long. The " +
      "agent is lost when it does not answer within 1.4 times that, from " +
      "1s to 5.6s, or within four round trips. Konnectivity: 1h0m0s.",
  }),
  "server-id": textFlag("", {
    isCommon: true,
    group: AGENTS,
    placeholder: "ID",
    environment: ["PROXY_SERVER_ID"],
    help: "ID by which agents tell this server from others.",
    defaultText: "$PROXY_SERVER_ID or a random UUID",
  }),
  "server-count": countFlag(1, 1, 65_535, {
    group: AGENTS,
    help: "Number of servers, which agents are sent. More are counted where " +
      "servers know of each other.",
  }),

  "state-dir": stateDirectoryFlag("server", IDENTITY),
  ...stateFlags(IDENTITY),
  "server-names": listFlag([], {
    group: IDENTITY,
    help: "Names and addresses in the server's own certificate, besides " +
      "tunnel-server, which agents expect.",
  }),
  "node-certificate-ttl": durationFlag(NODE_CERTIFICATE_LIFE_MS, 60_000, {
    group: IDENTITY,
    help: "Lifetime of a joined node's certificate. The node renews it " +
      "after two thirds of that.",
  }),
  "node-binding": choiceFlag(["warn", "enforce"], "warn", {
    group: IDENTITY,
    help: "What to do with agents whose certificate (of --cluster-ca-cert) " +
      "does not name their id and identifiers. Konnectivity: nothing.",
  }),
  "duplicate-identity": choiceFlag(["warn", "refuse"], "warn", {
    group: IDENTITY,
    help: "What to do with an agent while another live process has its name " +
      "and key: a cloned machine, or a stolen key. refuse: the first " +
      "one stays.",
  }),

  ...PEER_FLAGS,

  "proxy-strategies": choicesFlag(
    ["default", "destHost", "defaultRoute", "cidr", "uid"],
    ["default"],
    {
      isCommon: true,
      group: ROUTING,
      help: "How to find an agent for a dial, tried in this order: default " +
        "(any), destHost (host, ipv4, ipv6), cidr (longest prefix), " +
        "uid, defaultRoute.",
    },
  ),
  "backend-dial-timeout": durationFlag(10_000, 0, {
    group: ROUTING,
    help: "Limit on a dial, including the agent's part; 0: no limit. " +
      "Konnectivity: 0s.",
  }),
  "peer-forwarding": booleanFlag(false, {
    group: ROUTING,
    help:
      "Forward a dial to another server when only that one has the agent, " +
      "and take such dials from others. For servers with one CA of their " +
      "own (--state-dir, --state). Without it callers are told which server " +
      "that is.",
  }),
  "message-size-limit": messageSizeFlag(ROUTING),

  "tls-min-version": textFlag("", {
    group: TLS,
    placeholder: "VERSION",
    help: "Lowest version of TLS: VersionTLS12 or VersionTLS13. Below them " +
      "nothing is offered, whatever is asked for.",
    tolerates: (text) =>
      /^VersionTLS1[01]$/.test(text)
        ? {
          text: "VersionTLS12",
          notice: `${text} is not offered here; TLS 1.2 is the lowest version`,
        }
        : undefined,
    defaultText: "VersionTLS12",
  }),
  "cipher-suites": listFlag([], {
    group: TLS,
    help: "TLS 1.2 suites that may be used, by Go's names. Suites without " +
      "forward secrecy or AEAD are never used. Needs OpenSSL 3.",
    defaultText: "all with forward secrecy and AEAD",
  }),

  "health-bind-address": textFlag("", {
    group: OPERATION,
    placeholder: "ADDRESS",
    help: "Address for /healthz, /readyz and /metrics.",
    defaultText: "all interfaces",
  }),
  "health-port": portFlag(8092, {
    isCommon: true,
    group: OPERATION,
    help: "Port for /healthz, /readyz and /metrics.",
  }),
  "admin-bind-address": textFlag("127.0.0.1", {
    group: OPERATION,
    placeholder: "ADDRESS",
    help: "Address of the admin endpoint.",
  }),
  "admin-port": portFlag(SERVER_ADMIN_PORT, {
    isCommon: true,
    group: OPERATION,
    help: "Port of the admin endpoint.",
  }),
  ...ADMIN_ACCESS_FLAGS,
  ...ADMIN_REMOTE_FLAGS,
  // Shorter than the grace of a Pod: a killed server leaves its lease behind.
  "graceful-shutdown-timeout": durationFlag(25_000, 0, {
    group: OPERATION,
    help: "How long conduits may continue after SIGTERM; the server ends " +
      "earlier when none is left. Kubernetes kills after 30s. 0: end at " +
      "once. Konnectivity: 0s.",
  }),

  "max-connections": countFlag(0, 0, PEERS_MAX, {
    group: LIMITS,
    help: "Limit on connections on all ports together; a further one is " +
      "refused. 0: seven eighths of the open files allowed (ulimit -n), " +
      "at most 65536.",
  }),
  "max-connections-per-source": countFlag(
    SOURCE_LIMITS_DEFAULT.connections,
    1,
    PEERS_MAX,
    {
      group: LIMITS,
      help: "Limit on connections from one address (IPv6: /64). Raise it " +
        "where a load balancer puts its own address in front of more " +
        "agents.",
    },
  ),
  "max-unauthenticated": countFlag(0, 0, PEERS_MAX, {
    group: LIMITS,
    help: "Limit on connections that have not authenticated yet, including " +
      "handshakes in progress; for a further one the oldest is closed. " +
      "0: half of --max-connections, at most 4096.",
  }),
  "max-unauthenticated-per-source": countFlag(
    SOURCE_LIMITS_DEFAULT.unauthenticated,
    1,
    PEERS_MAX,
    { group: LIMITS, help: "Limit on those from one address (IPv6: /64)." },
  ),

  "metrics-nodes-max": countFlag(NODES_MAX, 0, 100_000, {
    group: "Health, admin, shutdown",
    help:
      "Nodes that have metrics of their own (tunnel_node_…), in the order " +
      "in which they come; all others are counted together.",
  }),
  ...AUDIT_FLAGS,
  ...ACCESS_LOG_FLAGS,
  ...WORKERS_FLAG,
  ...HANDOVER_FLAGS,
  ...GENERAL_FLAGS,
  ...LOG_FLAGS,

  ...SERVER_KUBERNETES_FLAGS,
  ...KUBELET_FLAGS,
  ...DISCOVERY_FLAGS,

  "xfr-channel-size": countFlag(10, 1, 1_000_000, {
    group: "Accepted for Konnectivity's sake (no effect)",
    help: "Packets per receive channel.",
    status: { kind: "idle", because: "queues are bounded in bytes" },
  }),
  "warn-on-channel-limit": booleanFlag(true, {
    group: "Accepted for Konnectivity's sake (no effect)",
    help: "Deprecated by Konnectivity too.",
    status: { kind: "idle", because: "it is deprecated" },
  }),
  ...KLOG_FLAGS,
} as const;
