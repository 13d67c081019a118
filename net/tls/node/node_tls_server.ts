/**
 * A TLS server's handshake over a stream, by `node:tls`.
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
import {
  serverHandshakeError,
  TlsHandshakeError,
} from "../trust/tls_errors.ts";
import { NodeTlsStream } from "./node_tls_stream.ts";
import type { Stream } from "../../stream/stream.ts";
import { TlsGate } from "./tls_gate.ts";

/** A TLS server's identity, and its demands on clients. */
export interface NodeTlsServerOptions {
  /** PEM; `ca` verifies clients. */
  readonly credentials: TlsMaterial;
  /** Shown instead to clients that ask for this name (SNI, RFC 6066 §3). */
  readonly named?:
    | { readonly name: string; material(): TlsMaterial }
    | undefined;
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
export function nodeTlsServer(
  stream: Stream,
  options: NodeTlsServerOptions,
): Promise<Stream> {
  const gate = new TlsGate(stream);
  return new Promise((resolve, reject) => {
    const refuse = (error: Error) => gate.leave().then(() => reject(error));
    // One server object per connection: it opens no port, sees the newest
    // credentials, and is the only way to have clients truly verified.
    const server = tls.createServer(tlsOptions(options));
    server.on("tlsClientError", (error: Error, failed: tls.TLSSocket) => {
      failed.destroy();
      refuse(serverHandshakeError(error, stream.remoteAddress));
    });
    // Such as by an eviction.
    gate.once(
      "close",
      () =>
        setImmediate(() =>
          reject(serverHandshakeError(CLOSED, stream.remoteAddress))
        ),
    );
    const onSecure = (secure: tls.TLSSocket) => {
      const refusal = refuseClient(
        secure,
        options.clientCertificate,
        options.credentials.ca,
        stream.remoteAddress,
      );
      if (refusal === undefined) {
        return resolve(new NodeTlsStream(stream, gate, secure));
      }
      secure.on("error", ignore);
      secure.destroy();
      refuse(refusal);
    };
    const slipped = () =>
      refuse(new TlsHandshakeError("other", INTERNAL_ERROR));
    server.on(
      "secureConnection",
      (secure: tls.TLSSocket) =>
        guarded("handshake", () => onSecure(secure), slipped),
    );
    gate.onNetworkEnd = () =>
      refuse(serverHandshakeError(CLOSED, stream.remoteAddress));
    server.emit("connection", gate);
  });
}

function tlsOptions(options: NodeTlsServerOptions): tls.TlsOptions {
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
    // Verified all the same; `refuseClient` decides and can give the reason.
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

/** The error of a client that leaves during the handshake. */
const CLOSED = Object.assign(new Error("closed"), { code: "ECONNRESET" });

function ignore(): void {}
