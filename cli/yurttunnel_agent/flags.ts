/**
 * The flags of `tunnel yurttunnel-agent`: those of yurttunnel's agent, and a few
 * of ours.
 *
 * @module
 */

import { AGENT_FLAGS } from "../agent/flags.ts";
import { flag, inGroup } from "../flags/flag.ts";
import { KLOG_FLAGS } from "../flags/idle_flags.ts";
import { GENERAL_FLAGS, LOG_FLAGS } from "../flags/program_flags.ts";

const NODE_FLAGS = inGroup("Node (what this agent is and serves)", {
  "node-name": flag.word("NAME", {
    environment: ["NODE_NAME"],
    help: "Name of this node; the agent's id. Required.",
    defaultText: "$NODE_NAME",
  }),
  "node-ip": flag.word("ADDRESS", {
    environment: ["NODE_IP"],
    help: "Its address. Required.",
    defaultText: "$NODE_IP",
  }),
  "agent-identifiers": flag.word("LIST", {
    help: "What this agent serves: host, ipv4, ipv6, cidr, uid, " +
      "default-route, such as host=node7&ipv4=10.0.0.7, with & or commas.",
    defaultText: "the node's address and name",
  }),
});

const SERVERS_FLAGS = inGroup("Servers (where to connect)", {
  "tunnelserver-addr": flag.list([], {
    placeholder: "HOST:PORT",
    help: "Where servers are.",
    defaultText: "what --tunnelserver-service says",
  }),
  "tunnelserver-service": flag.text("kube-system/x-tunnel-server-svc:tcp", {
    placeholder: "NAMESPACE/NAME:PORT",
    help: "The Service before the servers, and the name of its port. Its " +
      "annotation x-tunnel-server-external-addr (HOST:PORT), its load " +
      "balancer, its nodes or its own address say where they are.",
  }),
  "tunnelserver-name": flag.word("NAME", {
    help:
      "Name that the servers' certificates must bear, whatever address is " +
      "dialed. Those of yurttunnel's servers bear x-tunnel-server-svc.",
    defaultText: "the address",
  }),
  "ca-cert": flag.file({
    help: "CA of the servers' certificates.",
    defaultText: "the API server's",
  }),
});

const CLUSTER_FLAGS = inGroup("Cluster (who issues this agent's certificate)", {
  "kube-config": flag.file({
    aliases: ["kubeconfig"],
    help: "Kubeconfig file with the API server's address and credentials.",
    defaultText: "/etc/kubernetes/kubelet.conf, or as a Pod does with " +
      "--apiserver-addr",
  }),
  "apiserver-addr": flag.word("HOST:PORT", {
    help: "Where the API server is, without --kube-config.",
  }),
  "bootstrap-kubeconfig": flag.file({
    help: "Used in place of --kube-config until there is a first certificate.",
  }),
  "cert-dir": flag.text("/var/lib/yurttunnel-agent/pki", {
    placeholder: "DIR",
    help: "Where the certificate is kept.",
  }),
});

const META_FLAGS = inGroup("Health, metrics, profiles", {
  "meta-host": flag.word("ADDRESS", {
    help: "Address for /healthz, /readyz, /metrics and /debug/pprof.",
    defaultText: "loopback, of the family of --node-ip",
  }),
  "meta-port": flag.port(10266, "Their port."),

  "admin-socket": flag.file({
    help: "Unix socket of the admin API, for this user and root: tunnel " +
      "status --agent unix:PATH.",
    defaultText: "none",
  }),
});

/** In the order in which the help shows them. */
export const YURTTUNNEL_AGENT_FLAGS = {
  ...NODE_FLAGS,
  "allow": AGENT_FLAGS["allow"],
  "deny": AGENT_FLAGS["deny"],
  "allow-preset": AGENT_FLAGS["allow-preset"],

  ...SERVERS_FLAGS,

  ...CLUSTER_FLAGS,

  ...META_FLAGS,

  "version": flag.boolean(false, {
    group: "General",
    help: "Print the version and exit.",
  }),
  ...GENERAL_FLAGS,
  ...LOG_FLAGS,
  ...KLOG_FLAGS,
} as const;
