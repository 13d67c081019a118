/**
 * The flags of `tunnel server`: Konnectivity's proxy-server, and ours.
 *
 * Where a default differs from Konnectivity's, the sentence ends with theirs.
 *
 * @module
 */

import { NODES_MAX } from "../../server/metrics/node_metrics.ts";
import { ADMIN_REMOTE_FLAGS } from "./admin_remote.ts";
import {
  ADMIN_ACCESS_FLAGS,
  GENERAL_FLAGS,
  HANDOVER_FLAGS,
  LOG_FLAGS,
  MESSAGE_SIZE_FLAG,
  SERVER_ADMIN_PORT,
  WORKERS_FLAG,
} from "../flags/program_flags.ts";
import { ACCESS_LOG_FLAGS, AUDIT_FLAGS } from "../flags/access_log_flags.ts";
import { common, flag, inGroup } from "../flags/flag.ts";
import { DISCOVERY_FLAGS } from "./discovery.ts";
import { PEER_FLAGS } from "./peers.ts";
import { KUBELET_FLAGS } from "./kubelet.ts";
import { SERVER_KUBERNETES_FLAGS } from "./kubernetes.ts";
import { KLOG_FLAGS, SERVER_IDLE_FLAGS } from "../flags/idle_flags.ts";
import { stateDirectoryFlag } from "../flags/state_directory.ts";
import { STATE_FLAGS } from "../flags/state_flags.ts";
import { SOURCE_LIMITS_DEFAULT } from "../../net/admission/connection_limits.ts";

/** Seven days: a node that is off for longer renews by proof of its key. */
const NODE_CERTIFICATE_LIFE_MS = 7 * 24 * 3600_000;

const TLS = "TLS";

/** More connections than any machine has. */
const PEERS_MAX = 10_000_000;

const FRONTENDS_FLAGS = inGroup("Frontends (callers)", {
  "mode": flag.choice(["auto", "grpc", "http-connect"], "auto", {
    help: "Protocol that frontends speak. auto tells gRPC and HTTP CONNECT " +
      "apart by the first bytes. Konnectivity: grpc.",
  }),
  "uds-name": common(flag.word("PATH", {
    help: "Listen on this unix socket instead of a port. Without any flag " +
      "for frontends the server listens on frontend.sock in " +
      "--state-dir.",
  })),
  "delete-existing-uds-file": flag.boolean(true, {
    help:
      "Remove what has that name first: a socket nobody listens at, or, as " +
      "Konnectivity does, any file.",
  }),
  "server-bind-address": flag.bind("Address for frontends."),
  "server-port": common(flag.port(8090, {
    help: "Port for frontends; 0 picks a free one. Not used with --uds-name.",
  })),
  "server-cert": common(flag.file("Certificate shown to frontends.")),
  "server-key": common(flag.file("Private key of --server-cert.")),
  "server-ca-cert": common(
    flag.file("CA of the certificates that frontends must show."),
  ),
  "frontend-keepalive-time": flag.duration(3_600_000, 1, {
    help: "Send a PING to a frontend that has been silent for this long.",
  }),
  "connect-early-200": flag.boolean(false, {
    help: "Answer CONNECT with 200 before the target has answered. This " +
      "saves a round trip, but a dial that fails afterwards resets the " +
      "caller without a reason.",
  }),

  "policy-file": common(flag.file({
    help: "Rules about which frontends may reach which nodes and targets, " +
      "and which addresses nodes may claim (.yaml or .json; " +
      "docs/policy.md).",
    defaultText: "every frontend may reach everything",
  })),
});

const AGENTS_FLAGS = inGroup("Agents", {
  "agent-bind-address": common(flag.bind("Address for agents.")),
  "agent-port": common(
    flag.port(8091, "Port for agents; 0 picks a free one."),
  ),
  "cluster-cert": common(flag.file({
    help: "Certificate shown to agents. Without it the server has a CA of " +
      "its own, and agents join with tokens.",
  })),
  "cluster-key": common(flag.file("Private key of --cluster-cert.")),
  "cluster-ca-cert": common(
    flag.file("CA of the certificates that agents must show."),
  ),
  "allow-anonymous-agents": flag.boolean(false, {
    help: "Let agents register without a certificate. Anyone who reaches " +
      "the port may then take any name that no joined node has, and " +
      "gets its connections. Needed with --cluster-cert and without " +
      "--cluster-ca-cert, unless agents connect on loopback only. " +
      "Konnectivity: always.",
  }),
  "alpn-proto": flag.list([], {
    help: "ALPN names of agents that mean h2, besides h2 itself.",
  }),
  "keepalive-time": flag.duration(4_000, 1, {
    help: "Send a PING to an agent that has been silent for this long. The " +
      "agent is lost when it does not answer within 1.4 times that, from " +
      "1s to 5.6s, or within four round trips. Konnectivity: 1h0m0s.",
  }),
  "server-id": common(flag.word("ID", {
    environment: ["PROXY_SERVER_ID"],
    help: "ID by which agents tell this server from others.",
    defaultText: "$PROXY_SERVER_ID or a random UUID",
  })),
  "server-count": flag.count(1, 1, 65_535, {
    help: "Number of servers, which agents are sent. More are counted where " +
      "servers know of each other.",
  }),
});

const IDENTITY_FLAGS = inGroup("Identity of agents", {
  "state-dir": stateDirectoryFlag("server"),
  ...STATE_FLAGS,
  "server-names": flag.list([], {
    help: "Names and addresses in the server's own certificate, besides " +
      "tunnel-server, which agents expect.",
  }),
  "node-certificate-ttl": flag.duration(NODE_CERTIFICATE_LIFE_MS, 60_000, {
    help: "Lifetime of a joined node's certificate. The node renews it " +
      "after two thirds of that.",
  }),
  "node-binding": flag.choice(["warn", "enforce"], "warn", {
    help: "What to do with agents whose certificate (of --cluster-ca-cert) " +
      "does not name their id and identifiers. Konnectivity: nothing.",
  }),
  "duplicate-identity": flag.choice(["warn", "refuse"], "warn", {
    help: "What to do with an agent while another live process has its name " +
      "and key: a cloned machine, or a stolen key. refuse: the first " +
      "one stays.",
  }),
});

const ROUTING_FLAGS = inGroup("Choosing an agent", {
  "proxy-strategies": common(flag.choices(
    ["default", "destHost", "defaultRoute", "cidr", "uid"],
    ["default"],
    {
      help: "How to find an agent for a dial, tried in this order: default " +
        "(any), destHost (host, ipv4, ipv6), cidr (longest prefix), " +
        "uid, defaultRoute.",
    },
  )),
  "backend-dial-timeout": flag.duration(10_000, 0, {
    help: "Limit on a dial, including the agent's part; 0: no limit. " +
      "Konnectivity: 0s.",
  }),
  "peer-forwarding": flag.boolean(false, {
    help:
      "Forward a dial to another server when only that one has the agent, " +
      "and take such dials from others. For servers with one CA of their " +
      "own (--state-dir, --state). Without it callers are told which server " +
      "that is.",
  }),
  "message-size-limit": MESSAGE_SIZE_FLAG,
});

const TLS_FLAGS = inGroup(TLS, {
  "tls-min-version": flag.word("VERSION", {
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
  "cipher-suites": flag.list([], {
    help: "TLS 1.2 suites that may be used, by Go's names. Suites without " +
      "forward secrecy or AEAD are never used. Needs OpenSSL 3.",
    defaultText: "all with forward secrecy and AEAD",
  }),
});

const OPERATION_FLAGS = inGroup("Health, admin, shutdown", {
  "health-bind-address": flag.bind(
    "Address for /healthz, /readyz and /metrics.",
  ),
  "health-port": common(
    flag.port(8092, "Port for /healthz, /readyz and /metrics."),
  ),
  "admin-bind-address": flag.bind(
    "Address of the admin endpoint.",
    "127.0.0.1",
  ),
  "admin-port": common(
    flag.port(SERVER_ADMIN_PORT, "Port of the admin endpoint."),
  ),
  ...ADMIN_ACCESS_FLAGS,
  ...ADMIN_REMOTE_FLAGS,
  // Shorter than the grace of a Pod: a killed server leaves its lease behind.
  "graceful-shutdown-timeout": flag.duration(25_000, 0, {
    help: "How long conduits may continue after SIGTERM; the server ends " +
      "earlier when none is left. Kubernetes kills after 30s. 0: end at " +
      "once. Konnectivity: 0s.",
  }),
});

const LIMITS_FLAGS = inGroup("Limits on peers", {
  "max-connections": flag.count(0, 0, PEERS_MAX, {
    help: "Limit on connections on all ports together; a further one is " +
      "refused. 0: seven eighths of the open files allowed (ulimit -n), " +
      "at most 65536.",
  }),
  "max-connections-per-source": flag.count(
    SOURCE_LIMITS_DEFAULT.connections,
    1,
    PEERS_MAX,
    {
      help: "Limit on connections from one address (IPv6: /64). Raise it " +
        "where a load balancer puts its own address in front of more " +
        "agents.",
    },
  ),
  "max-unauthenticated": flag.count(0, 0, PEERS_MAX, {
    help: "Limit on connections that have not authenticated yet, including " +
      "handshakes in progress; for a further one the oldest is closed. " +
      "0: half of --max-connections, at most 4096.",
  }),
  "max-unauthenticated-per-source": flag.count(
    SOURCE_LIMITS_DEFAULT.unauthenticated,
    1,
    PEERS_MAX,
    { help: "Limit on those from one address (IPv6: /64)." },
  ),
});

const HEALTH_ADMIN_SHUTDOWN_FLAGS = inGroup("Health, admin, shutdown", {
  "metrics-nodes-max": flag.count(NODES_MAX, 0, 100_000, {
    help:
      "Nodes that have metrics of their own (tunnel_node_…), in the order " +
      "in which they come; all others are counted together.",
  }),
});

/** In the order in which the help shows them. */
export const SERVER_FLAGS = {
  ...FRONTENDS_FLAGS,

  ...AGENTS_FLAGS,

  ...IDENTITY_FLAGS,

  ...PEER_FLAGS,

  ...ROUTING_FLAGS,

  ...TLS_FLAGS,

  ...OPERATION_FLAGS,

  ...LIMITS_FLAGS,

  ...HEALTH_ADMIN_SHUTDOWN_FLAGS,
  ...AUDIT_FLAGS,
  ...ACCESS_LOG_FLAGS,
  ...WORKERS_FLAG,
  ...HANDOVER_FLAGS,
  ...GENERAL_FLAGS,
  ...LOG_FLAGS,

  ...SERVER_KUBERNETES_FLAGS,
  ...KUBELET_FLAGS,
  ...DISCOVERY_FLAGS,

  ...SERVER_IDLE_FLAGS,
  ...KLOG_FLAGS,
} as const;
