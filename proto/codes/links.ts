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
    means: "TCP did not reach the server (connection refused, connection " +
      "timed out, no route to host). It is tried again.",
    causes: [
      "The server does not run, or listens elsewhere.",
      "A firewall drops or refuses the connection.",
      "The machine is off, or the address is another one's.",
      "A cable, a VPN or a default route is missing, or there is no IPv6.",
    ],
    mend: [
      "`tunnel doctor agent` walks the way step by step.",
      "`ip route get ADDRESS`; correct `--server`.",
      "On the server: `ss -ltn`; its first log lines name its addresses.",
      "Let the server's `--agent-port` (8091) through firewalls.",
    ],
    see: "operations.md",
  },
  TUN402: {
    slug: "no-server-linked",
    title: "A node has no link to any server",
    means: "Nobody reaches it. Its agent tries again and again.",
    causes: [
      "The agent or its machine does not run.",
      "The network, the server, or the node's certificate.",
    ],
    mend: [
      "On the server: `tunnel doctor node NAME`.",
      "On the node: `tunnel doctor agent`; its log says why an attempt failed.",
      "A node that is gone for ever: `tunnel node forget NAME`.",
    ],
    see: "operations.md",
  },
  TUN403: {
    slug: "link-lost",
    title: "A link between agent and server was lost",
    means: "What it carried is lost as well, and whether a pending dial " +
      "reached its target is not known. The agent links again by itself.",
    causes: [
      "The network, a restart, or a peer that was silent too long.",
      "The agent stops, or is Konnectivity's and had no room.",
    ],
    mend: [
      "Connect again.",
      "`tunnel node describe NAME` shows its last events.",
    ],
    see: "operations.md",
  },
  TUN406: {
    slug: "server-id-shared",
    title: "Two servers have one id",
    means: "Agents that find them behind one address link to one of them only.",
    causes: ["Two servers run with the same `--server-id`."],
    mend: ["Give each its own `--server-id`."],
    see: "operations.md",
  },
  TUN407: {
    slug: "server-linked-again",
    title: "An outage that was told of is over",
    means:
      "A server is linked again, a worker answers again, or a log can be " +
      "written again. The line says what was lost meanwhile.",
    causes: [
      "The network or the server came back, the machine has time again, " +
      "or room was made.",
    ],
    mend: ["Nothing."],
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
  TUN410: {
    slug: "datagrams-cut",
    title: "Datagrams of a Go agent are too long to be passed on",
    means: "Konnectivity's agent cuts datagrams at 4096 bytes; they are " +
      "dropped rather than passed on damaged.",
    causes: ["A service with long UDP answers behind a Go agent."],
    mend: ["Run `tunnel agent` on that node."],
    see: "operations.md",
  },
  TUN412: {
    slug: "http-proxy",
    title: "The HTTP proxy on the way does not connect us",
    means: "`HTTPS_PROXY` names it, and it refused or did not answer.",
    causes: ["It wants a password.", "It does not allow this port."],
    mend: [
      "Correct `HTTPS_PROXY`, or put the server into `NO_PROXY`.",
    ],
    see: "operations.md",
  },
  TUN413: {
    slug: "server-name-unresolved",
    title: "The server's name cannot be resolved",
    means: "DNS has no address for it, or does not answer.",
    causes: ["A typing error.", "The resolver in `/etc/resolv.conf` is away."],
    mend: ["`getent hosts NAME`."],
    see: "operations.md",
  },
  TUN415: {
    slug: "frontend-unreachable",
    title: "The frontend of the server cannot be reached",
    means: "The caller did not get as far as asking for a target.",
    causes: [
      "The server does not run, or has another socket.",
      "This user may not open the socket.",
    ],
    mend: ["Give `--frontend`, or run as a user of the socket's group."],
    see: "operations.md",
  },
  TUN416: {
    slug: "server-draining",
    title: "The server does not want this now",
    means: "It stops and takes nothing new, or it has this agent already. " +
      "Agents try other servers.",
    causes: [
      "A restart or an upgrade.",
      "A load balancer chose the same server again.",
    ],
    mend: [
      "Nothing, if the agent is linked soon after.",
      "Give several servers.",
    ],
    see: "operations.md",
  },
  TUN417: {
    slug: "protocol-fault",
    title: "A peer does not keep to the protocol",
    means:
      "The connection was ended; others are not touched. Where many from " +
      "one address do so, one connection a second is let in from there " +
      "until they stop.",
    causes: [
      "A program that is not ours, or a middlebox that changes bytes.",
      "An attack, or a scanner.",
    ],
    mend: [
      "Look what is at that address; see " +
      "`tunnel_server_peer_faults_total`.",
    ],
    see: "security.md",
  },
  TUN421: {
    slug: "server-silent",
    title: "The server accepts connections and says nothing",
    means: "The kernel of its machine answers, its program does not.",
    causes: ["It stands still or is overloaded.", "The port is another's."],
    mend: ["`tunnel doctor server` on its machine; restart it."],
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
  TUN423: {
    slug: "handshake-swallowed",
    title: "The line swallows the TLS handshake",
    means: "TCP connects, and what TLS sends is not answered.",
    causes: [
      "The path takes smaller packets than this machine sends, and the ICMP " +
      "message that says so is dropped (VPN, PPPoE, a tunnel).",
      "A firewall that inspects TLS drops it.",
    ],
    mend: [
      "Let ICMP (fragmentation needed, packet too big) through, or lower the " +
      "MTU: `ip link set dev INTERFACE mtu 1280`.",
      "Let the server's `--agent-port` through without inspection.",
    ],
    see: "troubleshooting.md",
  },
  TUN425: {
    slug: "line-loses-packets",
    title: "The line loses packets",
    means: "The kernel had to send packets again. All works, slower.",
    causes: ["A bad cable, Wi-Fi, or a line that is full."],
    mend: ["`mtr -T -P 8091 SERVER` shows where."],
    see: "troubleshooting.md",
  },
  TUN426: {
    slug: "loopback-only",
    title: "The server takes agents of its own machine only",
    means: "It listens on a loopback address, which no other machine reaches.",
    causes: ["`--agent-bind-address` is 127.0.0.1, ::1 or localhost."],
    mend: ["Leave `--agent-bind-address` out, or name an outer address."],
    see: "operations.md",
  },
} as const satisfies Area;
