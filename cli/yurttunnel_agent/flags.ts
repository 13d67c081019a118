/**
 * The flags of `tunnel yurttunnel-agent`: those of yurttunnel's agent, and a few
 * of ours.
 *
 * @module
 */

import { AGENT_FLAGS } from "../agent/flags.ts";
import {
  booleanFlag,
  fileFlag,
  listFlag,
  portFlag,
  textFlag,
} from "../flags/flag.ts";
import { GENERAL_FLAGS, KLOG_FLAGS, LOG_FLAGS } from "../flags/log_flags.ts";

const NODE = "Node (what this agent is and serves)";
const SERVERS = "Servers (where to connect)";
const CLUSTER = "Cluster (who issues this agent's certificate)";
const META = "Health, metrics, profiles";

/** In the order in which the help shows them. */
export const YURTTUNNEL_AGENT_FLAGS = {
  "node-name": textFlag("", {
    group: NODE,
    placeholder: "NAME",
    environment: ["NODE_NAME"],
    help: "Name of this node; the agent's id. Required.",
    defaultText: "$NODE_NAME",
  }),
  "node-ip": textFlag("", {
    group: NODE,
    placeholder: "ADDRESS",
    environment: ["NODE_IP"],
    help: "Its address. Required.",
    defaultText: "$NODE_IP",
  }),
  "agent-identifiers": textFlag("", {
    group: NODE,
    placeholder: "LIST",
    help: "What this agent serves: host, ipv4, ipv6, cidr, uid, " +
      "default-route, such as host=node7&ipv4=10.0.0.7, with & or commas.",
    defaultText: "the node's address and name",
  }),
  "allow": AGENT_FLAGS["allow"],
  "deny": AGENT_FLAGS["deny"],
  "allow-preset": AGENT_FLAGS["allow-preset"],

  "tunnelserver-addr": listFlag([], {
    group: SERVERS,
    placeholder: "HOST:PORT",
    help: "Where servers are.",
    defaultText: "what --tunnelserver-service says",
  }),
  "tunnelserver-service": textFlag("kube-system/x-tunnel-server-svc:tcp", {
    group: SERVERS,
    placeholder: "NAMESPACE/NAME:PORT",
    help: "The Service before the servers, and the name of its port. Its " +
      "annotation x-tunnel-server-external-addr (HOST:PORT), its load " +
      "balancer, its nodes or its own address say where they are.",
  }),
  "tunnelserver-name": textFlag("", {
    group: SERVERS,
    placeholder: "NAME",
    help:
      "Name that the servers' certificates must bear, whatever address is " +
      "dialed. Those of yurttunnel's servers bear x-tunnel-server-svc.",
    defaultText: "the address",
  }),
  "ca-cert": fileFlag({
    group: SERVERS,
    help: "CA of the servers' certificates.",
    defaultText: "the API server's",
  }),

  "kube-config": fileFlag({
    group: CLUSTER,
    aliases: ["kubeconfig"],
    help: "How to reach the API server, as whom.",
    defaultText: "/etc/kubernetes/kubelet.conf, or as a Pod does with " +
      "--apiserver-addr",
  }),
  "apiserver-addr": textFlag("", {
    group: CLUSTER,
    placeholder: "HOST:PORT",
    help: "Where the API server is, without --kube-config.",
  }),
  "bootstrap-kubeconfig": fileFlag({
    group: CLUSTER,
    help: "Used in place of --kube-config until there is a first certificate.",
  }),
  "cert-dir": textFlag("/var/lib/yurttunnel-agent/pki", {
    group: CLUSTER,
    placeholder: "DIR",
    help: "Where the certificate is kept.",
  }),

  "meta-host": textFlag("", {
    group: META,
    placeholder: "ADDRESS",
    help: "Address for /healthz, /readyz, /metrics and /debug/pprof.",
    defaultText: "loopback, of the family of --node-ip",
  }),
  "meta-port": portFlag(10266, { group: META, help: "Their port." }),

  "admin-socket": fileFlag({
    group: META,
    help: "Unix socket of the admin API, for this user and root: tunnel " +
      "status --agent unix:PATH.",
    defaultText: "none",
  }),

  "version": booleanFlag(false, {
    group: "General",
    help: "Print the version and exit.",
  }),
  ...GENERAL_FLAGS,
  ...LOG_FLAGS,
  ...KLOG_FLAGS,
} as const;
