/**
 * The admin port for other machines: TLS, for clients with a certificate of its
 * client authority. The rights of a client are decided elsewhere.
 *
 * @module
 */

import type { SecureVersion } from "node:tls";
import { lineKey } from "../../platform/log/line_key.ts";
import type { Log } from "../../platform/log/log.ts";
import type { AdminWho } from "../admin/admin_api.ts";
import type { HttpPeer, HttpPort } from "../admin/http_port.ts";
import type { CurrentMaterial } from "../tls/tls_acceptor.ts";
import type { BoundListener, ListenAddress } from "./listeners.ts";
import { listenSecure } from "./secure_listener.ts";

/** See the module description. */
export interface AdminRemote {
  readonly address: ListenAddress;
  /** What clients are shown; its CA is theirs. */
  readonly credentials: CurrentMaterial;
  readonly tls: {
    readonly minVersion: SecureVersion;
    readonly tls12Suites?: readonly string[];
  };
  /** @returns `undefined`: the caller has no rights. */
  whoIs(peer: Pick<HttpPeer, "identity">): AdminWho | undefined;
}

/**
 * Silent unauthenticated peers are ended as on the agent port, with the limits
 * of `port`.
 *
 * @throws {ListenError}
 */
export function listenAdminRemote(
  { address, credentials, tls }: AdminRemote,
  port: HttpPort,
  log: Log,
): BoundListener {
  return listenSecure({
    ...address,
    credentials,
    clientCertificate: "required",
    alpn: ["http/1.1"],
    ...tls,
    limiter: port.limiter,
    use: "administration",
  }, {
    onConnection: (stream, admitted) => port.take(stream, admitted),
    onRefused: ({ message }) =>
      log.event(`admin: ${message}`, {}, lineKey(message)),
    onProblem: (line) => log.warn(line, { code: "TUN513" }),
  });
}
