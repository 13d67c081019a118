/**
 * How a caller gets into the tunnel: which server, over what, in which protocol.
 * Pure data.
 *
 * @module
 */

/** How the server's frontend is spoken to. */
export type FrontendProtocol = "grpc" | "http-connect";

/** Where the frontend listens. */
export type FrontendAddress =
  | { readonly kind: "unix"; readonly path: string }
  | {
    readonly kind: "tcp";
    readonly host: string;
    readonly port: number;
    readonly tls: RoadTls;
  };

/** Certificates for a frontend on TCP, which always wants one of ours. */
export interface RoadTls {
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
  /** The name the server's certificate must bear; absent: the host. */
  readonly serverName?: string;
}

/** A way to targets: through a tunnel server, or straight there. */
export type Road =
  | { readonly kind: "direct" }
  | {
    readonly kind: "tunnel";
    readonly protocol: FrontendProtocol;
    readonly address: FrontendAddress;
  };

/** Such as `grpc over unix:/run/front.sock`, for logs and errors. */
export function describeRoad(road: Road): string {
  if (road.kind === "direct") return "direct";
  const { protocol, address } = road;
  return address.kind === "unix"
    ? `${protocol} over unix:${address.path}`
    : `${protocol} over ${address.host}:${address.port}`;
}
