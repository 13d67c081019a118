/**
 * The encrypted side of TLS by `node:tls` over any stream, with backpressure.
 *
 * The platform's TLS sockets buffer without bound and lose the peer's end of
 * stream when they are paused. So the *encrypted* bytes are held back instead:
 * TLS runs over this gate, which reads from the stream below only while the
 * decrypted side has room.
 *
 * @module
 */

import { Duplex } from "node:stream";
import { setImmediate } from "node:timers";
import { ReadBuffer } from "../../buffers/read_buffer.ts";
import {
  closedError,
  type Stream,
  type StreamUser,
  WOULD_BLOCK,
} from "../../stream/stream.ts";

/** Encrypted or decrypted bytes that wait on either side of TLS. */
export const HIGH_WATER_BYTES = 64 * 1024;

/** Bytes that wait for room below. */
interface Writing {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly done: (error?: Error) => void;
  at: number;
}

export class TlsGate extends Duplex implements StreamUser {
  readonly #below: Stream;
  readonly #reader = new ReadBuffer();
  #wantsRead = false;
  #networkEnded = false;
  #writing: Writing | undefined;
  #writes = 0;
  #isLeaving = false;
  #onWritten: (() => void) | undefined;
  #ending: (() => void) | undefined;
  /** Whether the decrypted side is full. */
  isBlocked: () => boolean = () => false;
  /**
   * The network gives no more. After the handshake TLS is not notified: it
   * would take any end for a proper one, and whether it is one depends on what
   * TLS has read before.
   */
  onNetworkEnd: () => void = () => this.push(null);
  /** Another holder has closed the stream below. */
  onCut: () => void = () => {};

  constructor(below: Stream) {
    super({ allowHalfOpen: true, highWaterMark: HIGH_WATER_BYTES });
    this.#below = below;
    this.on("error", ignore); // Reported through the TLS socket.
    below.notify(this);
  }

  /** There may be room again. Not from inside a call of the decrypted side. */
  open(): void {
    this.#pull();
  }

  /** Ends the encrypted side once everything has left. */
  async finish(): Promise<void> {
    await this.#silence();
    if (this.destroyed || this.writableFinished) return;
    await new Promise<void>((resolve) => {
      this.once("finish", resolve);
      this.once("close", resolve);
      this.end();
    });
  }

  /**
   * Waits until TLS has given all its output: it comes in pieces, one after
   * another, and a write counts as done when it is encrypted.
   */
  async #silence(): Promise<void> {
    let before = -1;
    while (!this.destroyed && this.#writes !== before) {
      before = this.#writes;
      if (this.#writing === undefined) {
        await new Promise<void>((resolve) => setImmediate(resolve));
      } else {
        await new Promise<void>((resolve) => this.#onWritten = resolve);
        before = -1;
      }
    }
  }

  /** Closes it and the stream below; settles when that is done. */
  leave(): Promise<void> {
    return new Promise((resolve) => {
      if (this.closed) return resolve();
      this.once("close", () => resolve());
      this.destroy();
    });
  }

  onReady(): void {
    if (this.destroyed) return;
    if (!this.#below.isOpen) {
      this.onCut();
      return void this.destroy(closedError());
    }
    this.#drain();
    this.#pull();
  }

  onFault(): void {
    this.#below.reset();
    this.destroy(closedError());
  }

  override _read(): void {
    this.#wantsRead = true;
    this.#pull();
  }

  #pull(): void {
    while (this.#wantsRead && !this.destroyed && !this.isBlocked()) {
      const bytes = this.#readOnce();
      if (bytes === WOULD_BLOCK) return;
      this.#wantsRead = false;
      if (bytes === undefined) return this.#endNetwork();
      this.push(bytes);
      if (!this.#below.turn.isOver) continue;
      if (this.#below.isOpen) this.#below.goOn();
      return;
    }
  }

  /** @returns `undefined`: there is no more. */
  #readOnce(): Uint8Array | typeof WOULD_BLOCK | undefined {
    const reader = this.#reader;
    try {
      const count = this.#below.read(reader.buffer);
      if (count === WOULD_BLOCK) {
        reader.release();
        return WOULD_BLOCK;
      }
      const bytes = reader.buffer.slice(0, count);
      if (count > 0) {
        this.#below.turn.moved(count);
        reader.adapt(count);
        return bytes;
      }
    } catch (error) {
      this.destroy(error as Error);
    }
    reader.release();
    return this.destroyed ? WOULD_BLOCK : undefined;
  }

  #endNetwork(): void {
    if (this.#networkEnded) return;
    this.#networkEnded = true;
    this.onNetworkEnd();
  }

  override _write(
    chunk: Uint8Array,
    _encoding: string,
    done: (error?: Error) => void,
  ): void {
    const bytes = chunk as Uint8Array<ArrayBuffer>;
    this.#writes++;
    this.#writing = { bytes, done, at: 0 };
    this.#drain();
  }

  override _final(done: () => void): void {
    this.#ending = done;
    try {
      this.#below.closeWrite();
    } catch {
      // A peer that has gone is noticed by reading.
    }
    this.#drain();
  }

  #drain(): void {
    const writing = this.#writing;
    if (writing !== undefined && !this.#writeOn(writing)) return;
    const ending = this.#ending;
    if (ending === undefined || !this.#isFlushed()) return;
    this.#ending = undefined;
    ending();
  }

  /** @returns Whether all of it was taken, or will never be. */
  #writeOn(writing: Writing): boolean {
    const { bytes, done } = writing;
    let failure: Error | undefined;
    try {
      while (writing.at < bytes.length) {
        const count = this.#below.write(bytes.subarray(writing.at));
        if (count === 0) return false;
        this.#below.turn.moved(count);
        writing.at += count;
      }
    } catch (error) {
      failure = error as Error;
    }
    this.#over(() => done(failure));
    return true;
  }

  #over(done: () => void): void {
    const onWritten = this.#onWritten;
    this.#writing = this.#onWritten = undefined;
    done();
    onWritten?.();
  }

  #isFlushed(): boolean {
    try {
      return this.#below.flush();
    } catch {
      return true; // It never will be.
    }
  }

  /**
   * In the next turn: the platform destroys this stream when TLS has failed,
   * and gives TLS's alert only afterwards.
   */
  override destroy(error?: Error): this {
    if (this.#isLeaving) return this;
    this.#isLeaving = true;
    setImmediate(() => super.destroy(error));
    return this;
  }

  override _destroy(
    error: Error | null,
    done: (error: Error | null) => void,
  ): void {
    this.#reader.release();
    this.#below.close();
    const ending = this.#ending;
    this.#ending = undefined;
    ending?.();
    this.#over(() => done(error));
  }
}

function ignore(): void {}
