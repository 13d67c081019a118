/**
 * TLS's client side of a stream, with backpressure: by OpenSSL where it can be
 * had, else by `node:tls` behind a gate.
 *
 * @module
 */

import type { SecureContext } from "./openssl/secure_context.ts";
import { usableContext } from "./openssl/secure_contexts.ts";
import type { TlsChoice } from "./openssl/tls_choice.ts";
import { clientHandshakeError } from "./trust/tls_errors.ts";
import { handshakeAsClient } from "./openssl/client_handshake.ts";
import { VerdictStream } from "./verdict_stream.ts";
import type { Stream } from "../stream/stream.ts";
import {
  type GatedTlsClientOptions,
  gatedTlsClientOver,
} from "./node/gated_tls_client.ts";

/** As whom, and whom to expect. */
export interface TlsClientOptions extends GatedTlsClientOptions {
  /** Only this; default: the cheapest there is. */
  readonly tls?: TlsChoice;
}

/**
 * Runs the handshake on `stream`, which belongs to this from now on.
 *
 * @throws {TlsHandshakeError} With `stream` closed. A server that does not trust
 *   us may say so later: the first `read` throws it.
 */
export async function tlsClientSocket(
  stream: Stream,
  options: TlsClientOptions,
): Promise<Stream> {
  const context = options.tls === "platform" ? undefined : contextFor(options);
  const secure = context === undefined
    ? gatedTlsClientOver(stream, options)
    : overOpenssl(stream, context, options);
  return new VerdictStream(await secure, options.address);
}

/** @returns `undefined`: the library is not there, or cannot use the certificate. */
function contextFor(
  { credentials: material, isUnverified = false, alpn }: TlsClientOptions,
): SecureContext | undefined {
  return usableContext({
    role: { kind: "client", isUnverified },
    material,
    alpn,
    minVersion: "TLSv1.2",
  });
}

async function overOpenssl(
  stream: Stream,
  context: SecureContext,
  { serverName, otherNames = [], address, signal, shown }: TlsClientOptions,
): Promise<Stream> {
  try {
    return await handshakeAsClient(stream, context, {
      serverName,
      otherNames,
      signal,
      ...(shown === undefined ? {} : { shown }),
    });
  } catch (error) {
    signal.throwIfAborted();
    throw clientHandshakeError(error, address);
  }
}
