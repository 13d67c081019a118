/**
 * TUN4: links between agents and servers, and connections on their way there.
 *
 * @module
 */

import type { Area } from "./problem.ts";

/** See the module description. */
export const LINKS = {
  TUN401: {
    slug: "server-unreachable",
    title: "No connection to the server",
    means: "Nothing was asked yet: its name has no address, its socket or " +
      "port is not reached (connection refused, connection timed out, no " +
      "route to host), or an HTTP proxy on the way does not connect us. " +
      "Agents try again.",
    causes: [
      "The server does not run, or listens elsewhere, or on loopback " +
      "only (`--agent-bind-address`).",
      "A firewall drops or refuses the connection.",
      "The machine is off, or the address is another one's.",
      "A cable, a VPN or a default route is missing, or there is no IPv6.",
      "A typing error in the name, or `/etc/resolv.conf` names a " +
      "resolver that is away.",
      "`HTTPS_PROXY` names a proxy that wants a password, or does not " +
      "allow this port.",
      "This user may not open the frontend's socket.",
    ],
    mend: [
      "`tunnel doctor agent` walks the way step by step.",
      "`getent hosts NAME`, `ip route get ADDRESS`; correct `--server` " +
      "or `--frontend`.",
      "On the server: `ss -ltn`; its first log lines name its addresses.",
      "Let the server's `--agent-port` (8091) through firewalls.",
      "Correct `HTTPS_PROXY`, or put the server into `NO_PROXY`.",
    ],
    see: "operations.md",
  },
  TUN402: {
    slug: "no-server-linked",
    title: "A node has no link to any server",
    means: "It cannot be reached. Its agent tries again and again.",
    causes: [
      "The agent or its machine does not run.",
      "The network, the server, or the node's certificate.",
    ],
    mend: [
      "On the server: `tunnel doctor node NAME`.",
      "On the node: `tunnel doctor agent`; its log says why an attempt failed.",
      "A node that will not come back: `tunnel node forget NAME`.",
    ],
    see: "operations.md",
  },
  TUN403: {
    slug: "link-lost",
    title: "A link between agent and server was lost, or was not taken",
    means: "What it carried is lost as well, and whether a pending dial " +
      "reached its target is not known. The agent links again by itself, or " +
      "to another server; the line says when it has.",
    causes: [
      "The network, a restart, or a peer that was silent too long.",
      "The agent stops, or is Konnectivity's and had no room.",
      "The server stops, is upgraded, or has this agent already: a load " +
      "balancer chose the same one again.",
    ],
    mend: [
      "Nothing, if the agent is linked soon after; connect again.",
      "`tunnel node describe NAME` shows its last events.",
    ],
    see: "operations.md",
  },
  TUN409: {
    slug: "admission-limit",
    title: "A limit on connections is reached",
    means: "Some connections or dials are refused or ended: those of one " +
      "caller, of one address, of the relay of discovery, or of all.",
    causes: [
      "Connections are opened and not closed.",
      "An attack.",
      "More agents behind one address than expected.",
    ],
    mend: [
      "`tunnel conn list` shows connections; `ss -tnp` shows programs.",
      "See `tunnel_server_limits_reached_total` for which limit it is.",
    ],
    see: "security.md",
  },
  TUN417: {
    slug: "protocol-fault",
    title: "A peer does not keep to the protocol",
    means:
      "The connection was ended; others are not touched. Where many from " +
      "one address do so, one connection a second is admitted from there " +
      "until they stop.",
    causes: [
      "A program that is not ours, or a middlebox that changes bytes.",
      "An attack, or a scanner.",
    ],
    mend: [
      "Look which program is at that address; see " +
      "`tunnel_server_peer_faults_total`.",
    ],
    see: "security.md",
  },
  TUN421: {
    slug: "server-silent",
    title: "A program says nothing, or does not get to its work in time",
    means: "The kernel of its machine answers, its program does not; or its " +
      "event loop was held up, and all that it carries waited.",
    causes: [
      "It hangs or is overloaded.",
      "The machine has too little processor time, or swaps.",
      "The port is another's.",
    ],
    mend: [
      "`tunnel doctor server` on its machine; restart it.",
      "`top` and `vmstat 1` there; add a server, or start it with " +
      "`--workers`.",
    ],
    see: "troubleshooting.md",
  },
  TUN422: {
    slug: "other-version",
    title: "An agent has another version than its server",
    means: "They work together; what is new in one of them the other does " +
      "not have.",
    causes: ["An upgrade is not complete."],
    mend: ["Upgrade servers first, then agents: `tunnel upgrade FILE`."],
    see: "operations.md",
  },
  TUN425: {
    slug: "line-loses-packets",
    title: "The line loses packets, or swallows the long ones",
    means: "The kernel had to send packets again: all works, slower. Or TCP " +
      "connects, and what TLS sends is not answered.",
    causes: [
      "A bad cable, Wi-Fi, or a line that is full.",
      "The path takes smaller packets than this machine sends, and the " +
      "ICMP message that says so is dropped (VPN, PPPoE, a tunnel).",
      "A firewall that inspects TLS drops it.",
    ],
    mend: [
      "`mtr -T -P 8091 SERVER` shows where.",
      "Let ICMP (fragmentation needed, packet too big) through, or lower " +
      "the MTU: `ip link set dev INTERFACE mtu 1280`.",
      "Let the server's `--agent-port` through without inspection.",
    ],
    see: "troubleshooting.md",
  },
} as const satisfies Area;
