/**
 * TLS's server side of an accepted socket, with backpressure: by OpenSSL where
 * it can be had and the socket is one of the C library, else by `node:tls`
 * behind a gate.
 *
 * Credentials are given per connection, so a reload needs nothing here.
 *
 * @module
 */

import type { SecureContext } from "./openssl/secure_context.ts";
import { usableContext } from "./openssl/secure_contexts.ts";
import { SecureSession } from "./openssl/secure_session.ts";
import type { TlsChoice } from "./openssl/tls_choice.ts";
import { TlsHandshakeError } from "./trust/tls_errors.ts";
import type { ByteSocket } from "../stream/byte_socket.ts";
import { PolledSocket } from "../stream/polled_socket.ts";
import { handshakeAsServer } from "./openssl/server_handshake.ts";
import { watched } from "../stream/watched_socket.ts";
import {
  type GatedTlsOptions,
  gatedTlsSocket,
} from "./node/gated_tls_socket.ts";

/** How a TLS server presents itself and what it demands. */
export interface TlsServerOptions extends GatedTlsOptions {
  /** Only this; default: the cheapest there is. */
  readonly tls?: TlsChoice;
  /** See `SecureContextOptions`; the platform's TLS knows no such limit. */
  readonly tls12Suites?: readonly string[];
  /** The connection was closed from here, however often that is. */
  closed?(): void;
}

/**
 * Runs the handshake on `socket`, which belongs to this from now on and may
 * still be closed: that gives the handshake up.
 *
 * @throws {TlsHandshakeError} With `socket` closed.
 */
export function tlsServerSocket(
  socket: ByteSocket,
  options: TlsServerOptions,
): Promise<ByteSocket> {
  const { handshakeTimeoutMs: timeoutMs, closed = () => {} } = options;
  if (socket instanceof PolledSocket && options.tls !== "platform") {
    const context = contextFor(options);
    if (context !== undefined) {
      const open = () => new SecureSession(context);
      return handshakeAsServer(socket, open, { timeoutMs, closed });
    }
  }
  if (options.tls12Suites !== undefined) {
    socket.close();
    const problem = "Cannot limit TLS to the cipher suites given: OpenSSL " +
      "cannot use this port's certificate";
    return Promise.reject(new TlsHandshakeError("other", problem));
  }
  return gatedTlsSocket(watched(socket, closed), options);
}

function contextFor(
  { credentials, clientCertificate, alpn, minVersion, tls12Suites }:
    TlsServerOptions,
): SecureContext | undefined {
  return usableContext({
    role: { kind: "server", clientCertificate },
    material: credentials,
    alpn,
    minVersion,
    ...(tls12Suites === undefined ? {} : { tls12Suites }),
  });
}
