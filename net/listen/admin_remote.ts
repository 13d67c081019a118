/**
 * The admin port for other machines: TLS, and nobody without a certificate that
 * the authority of its clients has issued. What its owner may is decided by
 * others.
 *
 * @module
 */

import type { SecureVersion } from "node:tls";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import { lineKey } from "../../platform/log/line_key.ts";
import type { Log } from "../../platform/log/log.ts";
import type { AdminWho } from "../admin/admin_api.ts";
import type { HttpPeer, HttpPort } from "../admin/http_port.ts";
import type { Stream } from "../stream/stream.ts";
import { type CurrentMaterial, TlsAcceptor } from "../tls/tls_acceptor.ts";
import { TlsHandshakeError } from "../tls/trust/tls_errors.ts";
import {
  type BoundListener,
  type ListenAddress,
  listenTcp,
} from "./listeners.ts";

/** See the module description. */
export interface AdminRemote {
  readonly address: ListenAddress;
  /** What clients are shown; its CA is theirs. */
  readonly credentials: CurrentMaterial;
  readonly tls: {
    readonly minVersion: SecureVersion;
    readonly tls12Suites?: readonly string[];
  };
  /** @returns `undefined`: nobody who may do anything. */
  whoIs(peer: HttpPeer): AdminWho | undefined;
}

const HANDSHAKE_TIMEOUT_MS = 10_000;

/** At once: people and their scripts, of which more may come a moment later. */
export const REMOTE_HANDSHAKES_MAX = 64;

/** @throws {ListenError} */
export function listenAdminRemote(
  { address, credentials, tls }: AdminRemote,
  port: HttpPort,
  log: Log,
): BoundListener {
  const acceptor = new TlsAcceptor({
    credentials,
    clientCertificate: "required",
    alpn: ["http/1.1"],
    handshakeTimeoutMs: HANDSHAKE_TIMEOUT_MS,
    ...tls,
    onProblem: (line) => log.warn(line, { code: "TUN414" }),
  });
  let handshakes = 0;
  const accept = async (conn: Stream) => {
    if (handshakes >= REMOTE_HANDSHAKES_MAX) return conn.close();
    handshakes++;
    let stream: Stream;
    try {
      stream = await acceptor.accept(conn);
    } catch (error) {
      if (!(error instanceof TlsHandshakeError)) throw error;
      return log.event(`admin: ${error.message}`, {}, lineKey(error.message));
    } finally {
      handshakes--;
    }
    await port.accept(stream);
  };
  return listenTcp(address, {
    use: "administration",
    onConnection: (conn) => unawaited("http", accept(conn), () => conn.close()),
    onProblem: (line) => log.warn(line, { code: "TUN414" }),
  });
}
