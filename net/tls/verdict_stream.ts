/**
 * A TLS client's stream whose server has yet to say what it makes of us: in TLS
 * 1.3 a client is done before the server has looked at its certificate (RFC 8446
 * §4.4.2), so a failure before the server's first byte is its verdict.
 *
 * @module
 */

import { clientHandshakeError } from "./trust/tls_errors.ts";
import { closedError, type Stream } from "../stream/stream.ts";
import { StreamLayer } from "../stream/stream_layer.ts";

/** See the module description. */
export class VerdictStream extends StreamLayer {
  readonly #address: string;
  #isAccepted = false;

  /** @param address How to call the server in errors. */
  constructor(stream: Stream, address: string) {
    super(stream);
    this.#address = address;
  }

  /** @throws {TlsHandshakeError} Or as the stream. */
  override read(into: Uint8Array<ArrayBuffer>): number {
    return this.#isAccepted ? this.below.read(into) : this.#readVerdict(into);
  }

  #readVerdict(into: Uint8Array<ArrayBuffer>): number {
    // What our own `close` has ended says nothing about the server.
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
