/**
 * TUN5: dials and targets.
 *
 * @module
 */

import type { Area } from "./problem.ts";

/** See the module description. */
export const DIALS = {
  TUN501: {
    slug: "no-agent",
    title: "No agent serves the target",
    means: "The node is not connected, no agent takes this address, or the " +
      "server that has the agent does not take another server's dial.",
    causes: [
      "The agent does not run, or has no link.",
      "Servers have different policies or versions.",
      "A typing error in the node's name.",
    ],
    mend: [
      "`tunnel node list` shows who is connected, and since when.",
      "On the node: `tunnel doctor agent`.",
    ],
    see: "operations.md",
  },
  TUN502: {
    slug: "target-timeout",
    title: "The target does not answer",
    means: "The agent tried to connect and had no answer in its time " +
      "(connection timed out, i/o timeout).",
    causes: ["A firewall drops it.", "The host is down.", "A wrong address."],
    mend: ["On the node: `nc -vz HOST PORT`."],
    see: "operations.md",
  },
  TUN503: {
    slug: "target-refused",
    title: "The target refuses the connection",
    means: "The host answers, and nothing listens on that port " +
      "(connection refused).",
    causes: [
      "The program does not run, or listens on another port or address.",
      "`127.0.0.1` is the node's, not the caller's.",
    ],
    mend: ["On the node: `ss -ltn` shows what listens."],
    see: "operations.md",
  },
  TUN505: {
    slug: "target-unresolved",
    title: "The target's name cannot be resolved",
    means: "The node asked its resolver, which has no address for the name " +
      "(no such host), or whose name servers fail (server misbehaving).",
    causes: [
      "A typing error.",
      "The name is known elsewhere only.",
      "The name servers of the node are away, or refuse to answer.",
    ],
    mend: [
      "On the node: `getent hosts NAME`.",
      "Where that is slow or fails for every name: the name servers in " +
      "`/etc/resolv.conf`.",
    ],
    see: "operations.md",
  },
  TUN506: {
    slug: "target-failed",
    title: "The target could not be reached",
    means: "The sentence has the words of the node's system (no route to " +
      "host, network is unreachable), or of a kubelet that refuses us.",
    causes: [
      "Routing on the node, or IPv6 that is not there.",
      "The host is away.",
      "The kubelet's node is not connected.",
    ],
    mend: [
      "On the node: `nc -vz HOST PORT`, `ip route get ADDRESS`.",
      "`tunnel node list` shows who is connected.",
    ],
    see: "operations.md",
  },
  TUN507: {
    slug: "agent-silent",
    title: "The agent did not answer a dial",
    means: "The link stands, and the agent or the way to it is stuck.",
    causes: ["The node hangs or is overloaded.", "The network drops packets."],
    mend: ["`tunnel ping NODE`, `tunnel node describe NODE`."],
    see: "operations.md",
  },
  TUN508: {
    slug: "ambiguous-target",
    title: "The target is another machine on each node",
    means: "A loopback address without a node, and several nodes are there.",
    causes: ["`--node` was not given."],
    mend: ["Say which: `--node NAME`, or `…@NAME` for `forward`."],
    see: "operations.md",
  },
  TUN509: {
    slug: "dial-cancelled",
    title: "The dial or the connection was given up",
    means: "The caller went away, another attempt was quicker, or an " +
      "operator has ended it (tunnel conn kill).",
    causes: ["The caller's own time was over.", "See the sentence."],
    mend: [
      "Nothing, unless it comes often: then see how long dials take.",
      "Ask the operator that the sentence names; the audit log has when.",
    ],
    see: "operations.md",
  },
  TUN513: {
    slug: "no-descriptors",
    title: "A program has no descriptors left, or may use few",
    means: "`too many open files`: no further connection can be opened or " +
      "accepted. Each connection takes one or two; those that wait in the " +
      "kernel are accepted later.",
    causes: ["The limit is low: `ulimit -n`, or `LimitNOFILE` of the unit."],
    mend: ["`LimitNOFILE=1048576` in the unit, or raise `ulimit -n`."],
    see: "operations.md",
  },
  TUN515: {
    slug: "conduit-reset",
    title: "The other end reset the connection",
    means: "It ended hard, perhaps at once; bytes on their way are lost.",
    causes: [
      "The target's program ended, crashed, or wants another protocol " +
      "(TLS, or none).",
      "The program takes no more connections, or none from the node's " +
      "address, and ends them as they come.",
      "A service mesh, a firewall or a load balancer in front of the " +
      "target ends connections that it does not want.",
      "A port forwarding (a container's, `ssh -L`) accepts, and nothing " +
      "listens behind it.",
    ],
    mend: [
      "See the target's own log.",
      "On the node: `nc -v HOST PORT` shows whether it ends there at " +
      "once, too.",
    ],
    see: "operations.md",
  },
  TUN521: {
    slug: "endpoint-failed",
    title: "No endpoint of a service could be reached",
    means: "The proxy tried the endpoints that it knows, or the virtual " +
      "address that was dialed has none.",
    causes: [
      "All are away.",
      "None is served by a connected node.",
      "The service was removed.",
    ],
    mend: [
      "`tunnel services`, `tunnel endpoints SERVICE`: each with its " +
      "state.",
    ],
    see: "services.md",
  },
  TUN524: {
    slug: "host-is-node",
    title: "The target's host is the name of a connected node",
    means: "Our commands connect to that node's own loopback then, and say so.",
    causes: ["`tunnel dial NODE:PORT`, without `--node`."],
    mend: [
      "Nothing, if the node was meant; else give the host's address or its " +
      "full name.",
    ],
    see: "troubleshooting.md",
  },
} as const satisfies Area;
