/**
 * The encrypted side of TLS over a socket of ours, with backpressure.
 *
 * The platform's TLS sockets buffer without bound and lose the peer's end of
 * stream when they are paused. So the *encrypted* bytes are held back instead:
 * TLS runs over this gate, which reads from the network only while the
 * decrypted side has room. It costs some speed; carriers that bound their peer
 * themselves (HTTP/2 on the agent port) do without it.
 *
 * @module
 */

import { Duplex } from "node:stream";
import type { Socket } from "../../stream/socket.ts";
import { ReadBuffer } from "../../buffers/read_buffer.ts";

/** Encrypted or decrypted bytes that wait on either side of TLS. */
export const HIGH_WATER_BYTES = 64 * 1024;

/** See the module description. */
export class TlsGate extends Duplex {
  readonly #socket: Socket;
  readonly #reader = new ReadBuffer();
  #isReading = false;
  #wake: (() => void) | undefined;
  /** Whether the socket is closed along with this. */
  closesSocket = true;
  /** Whether the decrypted side is full. */
  isBlocked: () => boolean = () => false;
  /**
   * The network gives no more. After the handshake TLS is not told: it would
   * take any end for a proper one, and whether it is one depends on what TLS
   * has seen before.
   */
  onNetworkEnd: () => void = () => this.push(null);

  constructor(socket: Socket) {
    super({ allowHalfOpen: true, highWaterMark: HIGH_WATER_BYTES });
    this.#socket = socket;
    this.on("error", ignore); // Reported through the TLS socket.
  }

  /** There may be room again. */
  open(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  /** Ends the encrypted side once everything has left. */
  async finish(): Promise<void> {
    if (this.destroyed || this.writableFinished) return;
    await new Promise<void>((resolve) => {
      this.once("finish", resolve);
      this.once("close", resolve);
      this.end();
    });
  }

  override _read(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    this.#readOnce().catch((error) => {
      this.#isReading = false;
      this.destroy(error);
    });
  }

  /** Gated on both sides of the read: an end must not pass a full reader. */
  async #readOnce(): Promise<void> {
    await this.#room();
    const count = await this.#socket.read(this.#reader.buffer);
    await this.#room();
    this.#isReading = false;
    if (this.destroyed) return this.#reader.release();
    if (count === null) {
      this.#reader.release();
      return this.onNetworkEnd();
    }
    const bytes = this.#reader.buffer.slice(0, count);
    this.#reader.adapt(count);
    this.push(bytes);
  }

  async #room(): Promise<void> {
    while (this.isBlocked() && !this.destroyed) {
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
  }

  override _write(
    chunk: Uint8Array,
    _encoding: string,
    done: (error?: Error) => void,
  ): void {
    this.#writeAll(chunk).then(() => done(), done);
  }

  async #writeAll(chunk: Uint8Array): Promise<void> {
    let offset = 0;
    while (offset < chunk.length) {
      offset += await this.#socket.write(chunk.subarray(offset));
    }
  }

  override _final(done: () => void): void {
    // A peer that has gone is noticed by reading.
    this.#socket.closeWrite().then(done, () => done());
  }

  override _destroy(
    error: Error | null,
    done: (error: Error | null) => void,
  ): void {
    this.open();
    if (this.closesSocket) this.#socket.close();
    done(error);
  }
}

function ignore(): void {}
