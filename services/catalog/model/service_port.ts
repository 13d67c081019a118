/**
 * What discovery reads out of a port of a service: what its `appProtocol` means to
 * those who look into what is carried, and what the resources of it are called (its
 * cluster, load assignment, route configuration, and its listener for a node proxy).
 *
 * Clients ask by these names; status and logs show them. Pure.
 *
 * @module
 */

import type { ServicePort } from "./model.ts";

/**
 * - `http`: HTTP, of whatever version the client speaks; HTTP/1.1 to endpoints.
 * - `h2c`: HTTP/2 without TLS, to endpoints as well.
 * - `grpc`: `h2c`, and gRPC in it.
 */
export type AppProtocol = "http" | "h2c" | "grpc";

/** As IANA, Kubernetes (KEP-3726) and Istio write them. */
const MEANINGS: ReadonlyMap<string, AppProtocol> = new Map([
  ["http", "http"],
  ["kubernetes.io/ws", "http"],
  ["h2c", "h2c"],
  ["http2", "h2c"],
  ["kubernetes.io/h2c", "h2c"],
  ["grpc", "grpc"],
]);

/**
 * @returns `undefined`: bytes, and the proxy that carries them looks at nothing. So is
 *   whatever is inside TLS (`https`, `kubernetes.io/wss`), and all of UDP.
 */
export function appProtocolOf(
  { protocol, appProtocol = "" }: Pick<ServicePort, "protocol" | "appProtocol">,
): AppProtocol | undefined {
  return protocol === "tcp" ? MEANINGS.get(appProtocol) : undefined;
}

/**
 * `namespace/name:PORT`, for UDP `namespace/name:PORT/udp`.
 *
 * @param key Of the service, as `keyOf` makes it.
 */
export function resourceNameOf(
  key: string,
  { port, protocol }: Pick<ServicePort, "port" | "protocol">,
): string {
  return `${key}:${port}${protocol === "udp" ? "/udp" : ""}`;
}
