/**
 * TLS's client side of a stream, with backpressure: by OpenSSL if this machine
 * has it, else by `node:tls` behind a gate.
 *
 * @module
 */

import type { SecureContext } from "./openssl/secure_context.ts";
import { usableContext } from "./openssl/secure_contexts.ts";
import type { TlsChoice } from "../libc/choices.ts";
import { clientHandshakeError } from "./trust/tls_errors.ts";
import { handshakeAsClient } from "./openssl/handshake.ts";
import { closedError, type Stream } from "../stream/stream.ts";
import { StreamLayer } from "../stream/stream_layer.ts";
import {
  nodeTlsClient,
  type NodeTlsClientOptions,
} from "./node/node_tls_client.ts";

/** Our identity, and the server to expect. */
export interface TlsClientOptions extends NodeTlsClientOptions {
  /** Only this; default: the cheapest there is. */
  readonly tls?: TlsChoice | undefined;
}

/**
 * Does the handshake on `stream`, which belongs to this from now on.
 *
 * @throws {TlsHandshakeError} With `stream` closed. A server that does not
 *   trust us may report it later: the first `read` throws it.
 */
export async function tlsClient(
  stream: Stream,
  options: TlsClientOptions,
): Promise<Stream> {
  const context = options.tls === "platform" ? undefined : contextFor(options);
  const secure = context === undefined
    ? nodeTlsClient(stream, options)
    : overOpenssl(stream, context, options);
  return new UnconfirmedStream(await secure, options.address);
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

/**
 * A stream whose server has yet to accept our certificate: in TLS 1.3 a client
 * is done before the server has read its certificate (RFC 8446 §4.4.2), so a
 * failure before the server's first byte is its decision.
 */
class UnconfirmedStream extends StreamLayer {
  readonly #address: string;
  #isAccepted = false;

  /** @param address How to call the server in errors. */
  constructor(stream: Stream, address: string) {
    super(stream);
    this.#address = address;
  }

  /** @throws {TlsHandshakeError} Or as the stream. */
  override read(into: Uint8Array<ArrayBuffer>): number {
    return this.#isAccepted ? this.below.read(into) : this.#readFirst(into);
  }

  #readFirst(into: Uint8Array<ArrayBuffer>): number {
    // An end by our own `close` is no decision of the server.
    if (!this.below.isOpen) throw closedError();
    let count: number;
    try {
      count = this.below.read(into);
    } catch (error) {
      throw clientHandshakeError(error, this.#address);
    }
    if (count === 0) throw clientHandshakeError(ENDED, this.#address);
    if (count > 0) this.#isAccepted = true;
    return count;
  }
}

/** What {@linkcode clientHandshakeError} knows as a close without a word. */
const ENDED = Object.assign(new Error("closed"), { code: "ECONNRESET" });
