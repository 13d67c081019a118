/**
 * The client library: connections through the tunnel for programs.
 * `docs/library.md` shows how it is imported and used.
 *
 * ```ts ignore
 * import { dial } from "@tunnel/client";
 *
 * await using conn = await dial("127.0.0.1:10250", {
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

export type { ProxyEnvironment } from "../net/dial/proxy_environment.ts";
export type { ServerAddress } from "../net/dial/server_addresses.ts";
export { ListenError, type ListenProblem } from "../net/bind/listen_error.ts";
export type { CredentialFiles } from "../net/tls/trust/credentials.ts";
export type { DialWishes } from "../proto/link/dial_wishes.ts";
export type { ConnectionId } from "../proto/peer/connection_id.ts";
export type { DialTarget } from "../proto/peer/dial_error.ts";
export type { TraceContext } from "../proto/peer/trace_context.ts";
export type { Clock, Timer, Timers } from "../proto/sync/clock.ts";
export type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
  ConduitState,
} from "../proto/transfer/conduit.ts";
export { TunnelLostError, TunnelResetError } from "./dial_error.ts";
export { dial, dialDatagrams, type DialOptions } from "./dial.ts";
export { type DialFailure, TunnelDialError } from "./dial_error.ts";
export {
  EgressConfigError,
  type EgressRoutes,
  NETWORK_CONTEXTS,
  type NetworkContext,
  parseEgressConfig,
} from "./egress_config.ts";
export { type Forward, forward, type ForwardOptions } from "./forward.ts";
export type {
  FrontendAddress,
  FrontendProtocol,
  NodeRoute,
  RouteTls,
  TunnelRoute,
} from "./tunnel_route.ts";
export {
  openDialer,
  type TunnelDial,
  type TunnelDialer,
} from "./tunnel_dialer.ts";
export type { TunnelAddr } from "./tunnel_conn.ts";
export { TunnelConn } from "./tunnel_conn.ts";
export { TunnelDatagrams } from "./tunnel_datagrams.ts";
