/**
 * A TLS client's stream whose server has yet to say what it makes of us: in TLS
 * 1.3 a client is done before the server has looked at its certificate (RFC 8446
 * §4.4.2), so a failure before the server's first byte is its verdict.
 *
 * @module
 */

import { clientHandshakeError } from "../trust/tls_errors.ts";
import type { PeerCredentials } from "../../stream/byte_socket.ts";
import type { PolledStream } from "../../stream/polled_stream.ts";
import type { Poller } from "../../poll/poller.ts";
import { closedError } from "../../stream/stream_descriptor.ts";

/** See the module description. */
export class VerdictStream implements PolledStream {
  readonly number: number;
  readonly poller: Poller;
  readonly isTcp: boolean;
  readonly closesInOrder: boolean;
  readonly #stream: PolledStream;
  readonly #address: string;
  #isAccepted = false;

  /** @param address How to call the server in errors. */
  constructor(stream: PolledStream, address: string) {
    this.number = stream.number;
    this.poller = stream.poller;
    this.isTcp = stream.isTcp;
    this.closesInOrder = stream.closesInOrder;
    this.#stream = stream;
    this.#address = address;
  }

  get isOpen(): boolean {
    return this.#stream.isOpen;
  }

  peerCredentials(): PeerCredentials | undefined {
    return this.#stream.peerCredentials();
  }

  noticed(ready: number): void {
    this.#stream.noticed(ready);
  }

  /** @throws {TlsHandshakeError} Or as the stream. */
  read(into: Uint8Array<ArrayBuffer>): number {
    return this.#isAccepted ? this.#stream.read(into) : this.#readVerdict(into);
  }

  write(bytes: Uint8Array<ArrayBuffer>): number {
    return this.#stream.write(bytes);
  }

  flush(): boolean {
    return this.#stream.flush();
  }

  closeWrite(): void {
    this.#stream.closeWrite();
  }

  close(): void {
    this.#stream.close();
  }

  reset(): void {
    this.#stream.reset();
  }

  #readVerdict(into: Uint8Array<ArrayBuffer>): number {
    // What our own `close` has ended says nothing about the server.
    if (!this.#stream.isOpen) throw closedError();
    let count: number;
    try {
      count = this.#stream.read(into);
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
