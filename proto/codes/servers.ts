/**
 * TUN6, TUN7 and TUN8: what servers decide by, publish and keep.
 *
 * @module
 */

import type { Area } from "./problem.ts";

/** TUN6: policy and the audit log. */
export const POLICY = {
  TUN601: {
    slug: "server-rule-denies",
    title: "The server's policy does not allow it",
    means: "A rule denies the dial, no rule allows it, or no entry of " +
      "`nodes[].services` lets the node announce its service. The sentence names " +
      "the rule.",
    causes: [
      "The policy wants it so.",
      "The caller, the node, the host or the port is in no rule.",
    ],
    mend: [
      "`tunnel policy test --as NAME HOST:PORT` shows what decides, and " +
      "the nearest rule.",
      "Add a rule to the policy file; it is read again by itself.",
    ],
    see: "policy.md",
  },
  TUN603: {
    slug: "agent-rule-denies",
    title: "The agent's rules do not allow the dial",
    means: "The node's own `--deny` names this target, or it has `--allow` " +
      "and nothing there is this target.",
    causes: [
      "The node's owner wants that, or did not think of it.",
    ],
    mend: [
      "Change `--deny`, or add an `--allow` rule for it on the node.",
    ],
    see: "policy.md",
  },
} as const satisfies Area;

/** TUN7: services, discovery, and the service proxy. */
export const DISCOVERY = {
  TUN701: {
    slug: "source-failed",
    title: "A source of services cannot be followed, or had missed changes",
    means: "Its last state stays in use; it is tried again, and read as a " +
      "whole. A server whose source has not answered since the start sends " +
      "clients of discovery to other servers.",
    causes: [
      "etcd, the API server, the URL or the discovery server is away.",
      "The discovery server refuses this node.",
      "The file is gone.",
      "A watch that lost events.",
    ],
    mend: [
      "The line has the details. `tunnel status` lists the sources.",
      "`tunnel doctor` on the proxy's machine.",
    ],
    see: "services.md",
  },
  TUN708: {
    slug: "service-unserved",
    title: "A client of discovery is not served, or rejects what it is sent",
    means:
      "The service has a feature that these clients do not support; or the " +
      "client asks for resources that this server does not have, and may " +
      "wait without end; or it refuses an answer and keeps its earlier " +
      "state. For a client that repeats this, most log lines are left out.",
    causes: [
      "The line says what, or has the client's reason.",
      "A client with a configuration for another control plane.",
      "An old client.",
    ],
    mend: ["`tunnel xds status`, `tunnel xds diff CLIENT`."],
    see: "discovery.md",
  },
} as const satisfies Area;

/** TUN8: servers, their state, and each other. */
export const SERVERS = {
  TUN801: {
    slug: "state-unusable",
    title: "The server's state cannot be used",
    means:
      "A record cannot be read, the directory is not this program's, the " +
      "key of `--state-key-file` does not fit, or the state cannot be " +
      "copied like that. Nothing was changed, or the sentence says where " +
      "a copy is.",
    causes: [
      "A file was edited, or another version wrote it.",
      "The owner or mode; a wrong `--state-dir`.",
      "The key is another file than that of the other servers, or others " +
      "may read it.",
      "The place of a copy is not empty, or servers change what is " +
      "copied.",
    ],
    mend: [
      "`tunnel state check`; restore a backup.",
      "`chmod 0700` and `chown`, or another `--state-dir`.",
      "Give the same key file on all servers, with mode 0600.",
    ],
    see: "identity.md",
  },
  TUN802: {
    slug: "state-away",
    title: "etcd, Kubernetes or the store of the state does not answer",
    means: "What was read stays in use; nothing new can be kept meanwhile. " +
      "Servers may not learn of each other, so dials for agents of other " +
      "servers may fail. A service that is to be registered is tried " +
      "again.",
    causes: [
      "etcd or the API server is away, or this account may not do that.",
      "User, password or certificate.",
    ],
    mend: [
      "`etcdctl endpoint health` with the same files, `kubectl get --raw " +
      "/readyz`.",
      "`kubectl auth can-i --list` as the account of the server or agent.",
      "`tunnel status` lists the servers.",
    ],
    see: "operations.md",
  },
} as const satisfies Area;
