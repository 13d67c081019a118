/**
 * What a port's `appProtocol` means to those who look into what is carried.
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
