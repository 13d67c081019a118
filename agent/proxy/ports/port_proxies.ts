/**
 * Who serves which protocol.
 *
 * @module
 */

import type { Protocol } from "../../../catalog/model/model.ts";
import type { CreatePortProxy } from "../listeners/proxied_port.ts";
import { TcpPortProxy } from "../sessions/tcp_proxy.ts";
import { UdpSessions } from "../sessions/udp_sessions.ts";

/** A protocol that is missing is not served. */
export type PortProxies = Readonly<Partial<Record<Protocol, CreatePortProxy>>>;

export const PORT_PROXIES: PortProxies = {
  tcp: (port, context) => new TcpPortProxy(port, context),
  udp: (port, context) => new UdpSessions(port, context),
};
