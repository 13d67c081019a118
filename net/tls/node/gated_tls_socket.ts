/**
 * A TLS server's side of an accepted connection, with backpressure, by
 * `node:tls`; `tls_server_socket.ts` has what is cheaper where it can be had.
 *
 * TLS runs over a {@linkcode TlsGate}; see there why.
 *
 * Credentials are given per connection, so a reload needs nothing here.
 *
 * @module
 */

import tls from "node:tls";
import {
  type ClientCertificateRule,
  refuseClient,
} from "../trust/client_certificate.ts";
import type { TlsMaterial } from "../trust/credentials.ts";
import { serverHandshakeError } from "../trust/tls_errors.ts";
import { GatedTlsSocket } from "./gated_socket.ts";
import type { ByteSocket } from "../../stream/byte_socket.ts";
import { TlsGate } from "./tls_gate.ts";

/** How a TLS server presents itself and what it demands. */
export interface GatedTlsOptions {
  /** PEM; `ca` verifies clients. */
  readonly credentials: TlsMaterial;
  readonly clientCertificate: ClientCertificateRule;
  /** Protocols by preference; a client that offers none is still served. */
  readonly alpn: readonly string[];
  readonly handshakeTimeoutMs: number;
  /** `TLSv1.2` or `TLSv1.3`. */
  readonly minVersion: tls.SecureVersion;
}

/**
 * Runs the handshake on `socket`, which belongs to this from now on.
 *
 * @throws {TlsHandshakeError} With `socket` closed.
 */
export function gatedTlsSocket(
  socket: ByteSocket,
  options: GatedTlsOptions,
): Promise<ByteSocket> {
  const gate = new TlsGate(socket);
  return new Promise((resolve, reject) => {
    const refuse = (error: Error) => {
      gate.destroy();
      reject(error);
    };
    // One server object per connection: it opens no port, sees the newest
    // credentials, and is the only way to have clients truly verified.
    const server = tls.createServer(tlsOptions(options));
    server.on("tlsClientError", (error: Error, failed: tls.TLSSocket) => {
      failed.destroy();
      refuse(serverHandshakeError(error, socket.remoteAddress));
    });
    server.on("secureConnection", (secure: tls.TLSSocket) => {
      const refusal = refuseClient(
        secure,
        options.clientCertificate,
        options.credentials.ca,
        socket.remoteAddress,
      );
      if (refusal === undefined) {
        return resolve(new GatedTlsSocket(socket, gate, secure));
      }
      secure.on("error", ignore);
      secure.destroy();
      refuse(refusal);
    });
    gate.onNetworkEnd = () =>
      refuse(serverHandshakeError(CLOSED, socket.remoteAddress));
    server.emit("connection", gate);
  });
}

function tlsOptions(options: GatedTlsOptions): tls.TlsOptions {
  const { cert, key, ca } = options.credentials;
  return {
    cert,
    key,
    ...(ca === "" ? {} : { ca: [ca] }),
    requestCert: options.clientCertificate !== "none",
    // Verified all the same; `refuseClient` decides and can say why.
    rejectUnauthorized: false,
    ALPNProtocols: [...options.alpn],
    handshakeTimeout: options.handshakeTimeoutMs,
    minVersion: options.minVersion,
    allowHalfOpen: true,
  } as tls.TlsOptions;
}

/** What a client that leaves during the handshake amounts to. */
const CLOSED = Object.assign(new Error("closed"), { code: "ECONNRESET" });

function ignore(): void {}
