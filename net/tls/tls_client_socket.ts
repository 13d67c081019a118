/**
 * TLS's client side of a connected socket, with backpressure: by OpenSSL where
 * it can be had and the socket is one of the C library, else by `node:tls`
 * behind a gate.
 *
 * @module
 */

import type { SecureContext } from "./openssl/secure_context.ts";
import { usableContext } from "./openssl/secure_contexts.ts";
import type { TlsChoice } from "./openssl/tls_choice.ts";
import { clientHandshakeError } from "./trust/tls_errors.ts";
import type { ByteSocket } from "../stream/byte_socket.ts";
import { handshakeAsClient } from "./openssl/client_handshake.ts";
import { PolledSocket } from "../stream/polled_socket.ts";
import { VerdictStream } from "./openssl/verdict_stream.ts";
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
 * Runs the handshake on `socket`, which belongs to this from now on.
 *
 * @throws {TlsHandshakeError} With `socket` closed. A server that does not trust
 *   us may say so later: the first `read` throws it.
 */
export function tlsClientSocket(
  socket: ByteSocket,
  options: TlsClientOptions,
): Promise<ByteSocket> {
  if (socket instanceof PolledSocket && options.tls !== "platform") {
    const context = contextFor(options);
    if (context !== undefined) return overOpenssl(socket, context, options);
  }
  return gatedTlsClientOver(socket, options);
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
  socket: PolledSocket,
  context: SecureContext,
  { serverName, otherNames = [], address, signal, shown }: TlsClientOptions,
): Promise<ByteSocket> {
  try {
    const secure = await handshakeAsClient(socket, context, {
      serverName,
      otherNames,
      signal,
      ...(shown === undefined ? {} : { shown }),
    });
    return secure.over((stream) => new VerdictStream(stream, address));
  } catch (error) {
    signal.throwIfAborted();
    throw clientHandshakeError(error, address);
  }
}
