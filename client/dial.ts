/**
 * One connection through the tunnel.
 *
 * @module
 */

import type { EgressRoads, NetworkContext } from "./egress_config.ts";
import type { Road } from "./road.ts";
import { openRoad } from "./road_dialer.ts";
import { TunnelConn } from "./tunnel_conn.ts";

/** How {@linkcode dial} finds its way. */
export type DialOptions =
  & {
    /** The `host` identifier of the only node wanted. */
    readonly node?: string;
    /** Without a node: only if there is no more than one, see `RoadDial`. */
    readonly oneAgent?: boolean;
    readonly signal?: AbortSignal;
    /** Milliseconds; 30 s unless given. */
    readonly timeoutMs?: number;
  }
  & (
    | { readonly via: Road }
    /** The road of a network context; one that is not configured is direct. */
    | { readonly roads: EgressRoads; readonly context: NetworkContext }
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
  const road = "via" in options
    ? options.via
    : options.roads.get(options.context) ?? { kind: "direct" };
  const { node, oneAgent, signal, timeoutMs } = options;
  const dialer = openRoad(road);
  try {
    const conduit = await dialer.dial({
      target: { protocol: "tcp", address },
      ...(node === undefined ? {} : { node }),
      ...(oneAgent === undefined ? {} : { oneAgent }),
      ...(signal === undefined ? {} : { signal }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    });
    return new TunnelConn(conduit);
  } finally {
    dialer.close();
  }
}
