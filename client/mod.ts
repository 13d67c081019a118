/**
 * The client library: connections through the tunnel for programs.
 *
 * ```ts ignore
 * import { dial } from "./client/mod.ts";
 *
 * const conn = await dial("127.0.0.1:10250", {
 *   via: {
 *     kind: "tunnel",
 *     protocol: "grpc",
 *     address: { kind: "unix", path: "/run/tunnel.sock" },
 *   },
 *   node: "node1",
 * });
 * await conn.write(new TextEncoder().encode("GET /healthz HTTP/1.0\r\n\r\n"));
 * conn.closeWrite();
 * for await (const chunk of conn.readable) await Deno.stdout.write(chunk);
 * ```
 *
 * @module
 */

export { dial, type DialOptions } from "./dial.ts";
export { type DialFailure, TunnelDialError } from "./dial_error.ts";
export {
  EgressConfigError,
  type EgressRoads,
  type NetworkContext,
  parseEgressConfig,
} from "./egress_config.ts";
export { type Forward, forward, type ForwardOptions } from "./forward.ts";
export type {
  FrontendAddress,
  FrontendProtocol,
  NodeRoad,
  Road,
  RoadTls,
} from "./road.ts";
export { openRoad, type RoadDial, type RoadDialer } from "./road_dialer.ts";
export {
  TunnelConn,
  TunnelLostError,
  TunnelResetError,
} from "./tunnel_conn.ts";
