/**
 * TLS's server side of an accepted socket, with backpressure: by OpenSSL where
 * it can be had and the socket is one of the C library, else by `node:tls`
 * behind a gate.
 *
 * Credentials are given per connection, so a reload needs nothing here.
 *
 * @module
 */

import type { SecureContext } from "../../libssl/secure_context.ts";
import { usableContext } from "../../libssl/secure_contexts.ts";
import { SecureSession } from "../../libssl/secure_session.ts";
import type { TlsChoice } from "../../libssl/tls_choice.ts";
import { TlsHandshakeError } from "../../tls/tls_errors.ts";
import type { OctetSocket } from "../octet_socket.ts";
import { PolledSocket } from "../polled/polled_socket.ts";
import { shakeHandsAsServer } from "../polled/server_handshake.ts";
import { watched } from "../watched_socket.ts";
import { type GatedTlsOptions, gatedTlsSocket } from "./gated_tls_socket.ts";

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
  socket: OctetSocket,
  options: TlsServerOptions,
): Promise<OctetSocket> {
  const { handshakeTimeoutMs: timeoutMs, closed = () => {} } = options;
  if (socket instanceof PolledSocket && options.tls !== "platform") {
    const context = contextFor(options);
    if (context !== undefined) {
      const open = () => new SecureSession(context);
      return shakeHandsAsServer(socket, open, { timeoutMs, closed });
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
