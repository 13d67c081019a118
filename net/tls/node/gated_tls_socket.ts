/**
 * A TLS server's side of an accepted connection, with backpressure, by
 * `node:tls`; `tls_acceptor.ts` has what is cheaper where it can be had.
 *
 * TLS runs over a {@linkcode TlsGate}; see there why.
 *
 * Credentials are given per connection, so a reload needs nothing here.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import tls from "node:tls";
import {
  guarded,
  INTERNAL_ERROR,
} from "../../../platform/errors/internal_errors.ts";
import {
  type ClientCertificateRule,
  refuseClient,
} from "../trust/client_certificate.ts";
import type { TlsMaterial } from "../trust/credentials.ts";
import { serverHandshakeError } from "../trust/tls_errors.ts";
import { gatedStream } from "./gated_socket.ts";
import { codeOf } from "../../../platform/errors/error_code.ts";
import { Socket } from "../../stream/socket.ts";
import type { Stream } from "../../stream/stream.ts";
import { TlsGate } from "./tls_gate.ts";

/** How a TLS server presents itself and what it demands. */
export interface GatedTlsOptions {
  /** PEM; `ca` verifies clients. */
  readonly credentials: TlsMaterial;
  /** Shown instead to clients that ask for this name (SNI, RFC 6066 §3). */
  readonly named?: { readonly name: string; material(): TlsMaterial };
  readonly clientCertificate: ClientCertificateRule;
  /** Protocols by preference; a client that offers none is still served. */
  readonly alpn: readonly string[];
  readonly handshakeTimeoutMs: number;
  /** `TLSv1.2` or `TLSv1.3`. */
  readonly minVersion: tls.SecureVersion;
}

/**
 * Runs the handshake on `stream`, which belongs to this from now on.
 *
 * @throws {TlsHandshakeError} With `stream` closed.
 */
export function gatedTlsSocket(
  stream: Stream,
  options: GatedTlsOptions,
): Promise<Stream> {
  const socket = new Socket(stream);
  const gate = new TlsGate(socket);
  // Until it is over, for there may be something to say behind TLS's end.
  gate.closesSocket = false;
  return new Promise((resolve, reject) => {
    const refuse = (error: Error) => {
      gate.destroy();
      socket.close();
      reject(error);
    };
    // One server object per connection: it opens no port, sees the newest
    // credentials, and is the only way to have clients truly verified.
    const server = tls.createServer(tlsOptions(options));
    server.on("tlsClientError", (error: Error, failed: tls.TLSSocket) => {
      failed.destroy();
      sendAlert(socket, error);
      refuse(serverHandshakeError(error, stream.remoteAddress));
    });
    gate.once("close", () => setImmediate(onGateClosed));
    const onGateClosed = () => {
      if (!gate.closesSocket) {
        refuse(serverHandshakeError(CLOSED, stream.remoteAddress));
      }
    };
    server.on("secureConnection", (secure: tls.TLSSocket) => {
      const refusal = refuseClient(
        secure,
        options.clientCertificate,
        options.credentials.ca,
        stream.remoteAddress,
      );
      if (refusal === undefined) {
        gate.closesSocket = true;
        return resolve(gatedStream(socket, gate, secure));
      }
      secure.on("error", ignore);
      secure.destroy();
      refuse(refusal);
    });
    gate.onNetworkEnd = () =>
      refuse(serverHandshakeError(CLOSED, stream.remoteAddress));
    server.emit("connection", gate);
  });
}

function tlsOptions(options: GatedTlsOptions): tls.TlsOptions {
  const { credentials, named } = options;
  const chosen = (material: TlsMaterial) => ({
    cert: material.cert,
    key: material.key,
    minVersion: options.minVersion,
    ...(material.ca === "" ? {} : { ca: [material.ca] }),
  });
  return {
    ...chosen(credentials),
    requestCert: options.clientCertificate !== "none",
    // Verified all the same; `refuseClient` decides and can say why.
    rejectUnauthorized: false,
    ALPNProtocols: [...options.alpn],
    handshakeTimeout: options.handshakeTimeoutMs,
    allowHalfOpen: true,
    ...(named === undefined ? {} : {
      SNICallback: (name: string, answer: SniAnswer) => {
        const choose = () => {
          const material = name === named.name ? named.material() : credentials;
          answer(null, tls.createSecureContext(chosen(material)));
        };
        const refuse = () => answer(new Error(INTERNAL_ERROR));
        guarded("handshake", choose, refuse);
      },
    }),
  } as tls.TlsOptions;
}

type SniAnswer = (error: Error | null, context?: tls.SecureContext) => void;

/**
 * Why the server has no answer to a ClientHello (RFC 8446 §6.2). The platform
 * loses the alert where TLS does not run over a socket of its own; nothing is
 * encrypted yet.
 */
const ALERTS: ReadonlyMap<string, number> = new Map([
  ["ERR_SSL_NO_SHARED_CIPHER", 40],
  ["ERR_SSL_UNSUPPORTED_PROTOCOL", 70],
  ["ERR_SSL_NO_APPLICATION_PROTOCOL", 120],
]);

/** The peer that does not take it at once does without. */
function sendAlert(socket: Socket, error: Error): void {
  const alert = ALERTS.get(codeOf(error));
  if (alert === undefined) return;
  const record = new Uint8Array([21, 3, 3, 0, 2, 2, alert]);
  socket.write(record).catch(() => {});
}

/** What a client that leaves during the handshake amounts to. */
const CLOSED = Object.assign(new Error("closed"), { code: "ECONNRESET" });

function ignore(): void {}
