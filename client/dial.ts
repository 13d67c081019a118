/**
 * One connection, or one flow of datagrams, through the tunnel.
 *
 * @module
 */

import type { Conduit } from "../proto/transfer/conduit.ts";
import type { EgressRoutes, NetworkContext } from "./egress_config.ts";
import type { TunnelRoute } from "./tunnel_route.ts";
import { openDialer, type TunnelDialer } from "./tunnel_dialer.ts";
import { addrOf, TunnelConn } from "./tunnel_conn.ts";
import { TunnelDatagrams } from "./tunnel_datagrams.ts";
import { HOST_IS_NODE } from "../proto/link/dial_wishes.ts";
import { hostOf, hostPort, portOf } from "../proto/peer/host_port.ts";
import { isIpAddress } from "../proto/peer/ip_address.ts";
import { TunnelDialError } from "./dial_error.ts";

/** How {@linkcode dial} finds its way. */
export type DialOptions =
  & {
    /** The `host` identifier of the only node wanted. */
    readonly node?: string | undefined;
    /** Without a node: only if there is no more than one, see `TunnelDial`. */
    readonly oneAgent?: boolean;
    /**
     * If given, a host that is the name of a connected node means that node's
     * own loopback, and this function is told so.
     */
    readonly onNode?: (line: string) => void;
    /** Gives the dial up; not the connection, once there is one. */
    readonly signal?: AbortSignal;
    /** Milliseconds; 30 s unless given. */
    readonly timeoutMs?: number;
  }
  & (
    | { readonly via: TunnelRoute }
    /** The route of a network context; one that is not configured is direct. */
    | { readonly routes: EgressRoutes; readonly context: NetworkContext }
  );

/**
 * Connects to `address` (`host:port`, IPv6 in brackets) over TCP.
 *
 * @throws {TunnelDialError} With the reason in Konnectivity's words.
 */
export async function dial(
  address: string,
  options: DialOptions,
): Promise<TunnelConn> {
  const conduit = await dialOnce("tcp", address, options);
  return new TunnelConn(conduit, addrOf("tcp", address));
}

/**
 * Opens a flow of datagrams to `address` (`host:port`, IPv6 in brackets) over
 * UDP. Not over CONNECT, which knows streams only.
 *
 * @throws {TunnelDialError} With the reason in Konnectivity's words.
 */
export async function dialDatagrams(
  address: string,
  options: DialOptions,
): Promise<TunnelDatagrams> {
  const conduit = await dialOnce("udp", address, options);
  return new TunnelDatagrams(conduit, addrOf("udp", address));
}

/** Over its own route, which is closed with the connection. */
async function dialOnce(
  protocol: "tcp" | "udp",
  address: string,
  options: DialOptions,
): Promise<Conduit> {
  const route = "via" in options
    ? options.via
    : options.routes.get(options.context) ?? { kind: "direct" };
  const { node, oneAgent, onNode, signal, timeoutMs } = options;
  const plain = openDialer(route);
  const dialer = onNode === undefined ? plain : namingNodes(plain, onNode);
  try {
    return await dialer.dial({
      target: { protocol, address },
      node,
      ...{ oneAgent, signal, timeoutMs },
    });
  } finally {
    dialer.close();
  }
}

// `NODE:PORT` for people: a target whose host is the name of a connected node
// is that node's own loopback.
//
// The server knows the nodes and its policy: it refuses such a dial, and a
// second dial names the node. Only commands for people do that; the targets of
// other programs are not changed.

/**
 * Dials as `dialer` does, and nodes by their names.
 *
 * @param say Told once of each host that is taken for a node.
 */
export function namingNodes(
  dialer: TunnelDialer,
  say: (line: string) => void,
): TunnelDialer {
  /**
   * A host that once was a node stays one: otherwise it would be another
   * machine.
   */
  const nodes = new Set<string>();
  return {
    async dial(dial) {
      const { protocol, address } = dial.target;
      const host = hostOf(address);
      if (dial.node !== undefined || isIpAddress(host)) {
        return await dialer.dial(dial);
      }
      const target = {
        protocol,
        address: hostPort("127.0.0.1", portOf(address)),
      };
      if (!nodes.has(host)) {
        try {
          return await dialer.dial({ ...dial, maybeNode: true });
        } catch (error) {
          const isNode = error instanceof TunnelDialError &&
            error.tunnelCode === HOST_IS_NODE;
          if (!isNode) throw error;
        }
        // Two callers at one time may both have asked.
        if (!nodes.has(host)) {
          say(
            `${host} is a connected node: dialing ${target.address} there, as ` +
              `--node ${host} does`,
          );
        }
        nodes.add(host);
      }
      return await dialer.dial({ ...dial, target, node: `id=${host}` });
    },
    close: () => dialer.close(),
  };
}
