/**
 * How a caller gets into the tunnel: which server, over what, in which protocol.
 * Pure data.
 *
 * @module
 */

import type { ProxyEnvironment } from "../net/dial/proxy_environment.ts";
import type { ServerAddress } from "../net/dial/server_addresses.ts";
import { hostPort } from "../proto/peer/host_port.ts";
import type {
  CredentialFiles,
  TlsMaterial,
} from "../net/tls/trust/credentials.ts";
import type { UpstreamIdentity } from "../net/channel/server_upstream.ts";

/** How the server's frontend is spoken to. */
export type FrontendProtocol = "grpc" | "http-connect";

/** The frontend's address. */
export type FrontendAddress =
  | { readonly kind: "unix"; readonly path: string }
  | {
    readonly kind: "tcp";
    readonly host: string;
    readonly port: number;
    readonly tls: RouteTls;
  };

/** Certificates for a frontend on TCP, which always wants one of ours. */
export interface RouteTls {
  /** PEM: whom to trust as the server. */
  readonly caFile: string;
  /** PEM: our certificate, and the intermediate ones up to its authority. */
  readonly certFile: string;
  /** PEM: its private key. */
  readonly keyFile: string;
  /** The name the server's certificate must bear; absent: the host. */
  readonly serverName?: string | undefined;
}

/** A way to targets: through a tunnel server, or straight there. */
export type TunnelRoute =
  | { readonly kind: "direct" }
  | NodeRoute
  | {
    readonly kind: "tunnel";
    readonly protocol: FrontendProtocol;
    readonly address: FrontendAddress;
    /**
     * Frontends of further servers, for dials that the first one cannot serve:
     * when it is away, has stopped, is draining, or has no agent for them.
     */
    readonly others?: readonly FrontendAddress[];
  };

/**
 * As a node, through a server's agent port: the server's policy says what a
 * node may reach.
 */
export interface NodeRoute {
  /** Tells it from other routes. */
  readonly kind: "node";
  /** At least one. */
  readonly addresses: readonly ServerAddress[];
  /** The node's files, read for each connection. */
  readonly files: CredentialFiles;
  /**
   * Used in place of `files` when the program itself follows the identity.
   *
   * @internal
   */
  readonly identity?: NodeIdentity | undefined;
  /** The name servers' certificates must bear; absent: the host. */
  readonly serverName?: string | undefined;
  /** HTTP proxies on the way to the server; absent: none. */
  readonly proxyEnv?: ProxyEnvironment;
}

/** Such as `grpc over unix:/run/front.sock`, for logs and errors. */
export function describeRoute(route: TunnelRoute): string {
  if (route.kind === "direct") return "direct";
  if (route.kind === "node") {
    const servers = route.addresses.map(({ host, port }) =>
      hostPort(host, port)
    );
    return `as a node over ${servers.join(", ")}`;
  }
  const { protocol, address, others = [] } = route;
  const servers = [address, ...others].map(describeFrontend);
  return `${protocol} over ${servers.join(", ")}`;
}

/** Such as `unix:/run/front.sock`. */
export function describeFrontend(address: FrontendAddress): string {
  return address.kind === "unix"
    ? `unix:${address.path}`
    : hostPort(address.host, address.port);
}

// The identity of a node, for routes in its name: the certificate and the trust
// of connections, and callbacks for a refused certificate and for a chance to
// ask a server.
//
// It knows neither where an identity is kept nor how it is renewed.

export interface NodeIdentity extends UpstreamIdentity {
  /** For the next connection; valid after `ready`. */
  readonly current: TlsMaterial;
  /** Settles when what a server was asked is kept, or soon: before the end. */
  settled(): Promise<void>;
}
