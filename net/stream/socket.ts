/**
 * A {@linkcode Stream} with promises, for callers that read little: a question
 * and its answer, a head, the first look at a caller. Callers that move bytes
 * use the stream itself, without promises.
 *
 * It can be peeked into before it is read (`fill`). Peeked bytes that were not
 * dropped are read again, also by the next user of the stream.
 *
 * @module
 */

import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import { PeekedStream } from "./peeked_stream.ts";
import {
  closedError,
  type Stream,
  type StreamUser,
  WOULD_BLOCK,
} from "./stream.ts";

/**
 * The most that one look reads: a TLS record, or a head and the bytes after it.
 */
const FILL_BYTES_MAX = 16 * 1024;

/** One buffer for all: the bytes are copied before the next read. */
const shared = new Uint8Array(FILL_BYTES_MAX);

/** A call that waits. */
interface Waiting<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

interface Reading extends Waiting<number | null> {
  readonly into: Uint8Array<ArrayBuffer>;
}

interface Filling extends Waiting<boolean> {
  readonly bytes: number;
  readonly promise: Promise<boolean>;
}

/** Accepted bytes wait for the kernel, too: then they leave in any case. */
interface Writing extends Waiting<number> {
  readonly bytes: Uint8Array<ArrayBuffer>;
  taken: number;
}

/** One read and one write at a time. */
export class Socket implements StreamUser {
  #reading: Reading | undefined;
  #filling: Filling | undefined;
  #writing: Writing | undefined;
  /** Bytes that were looked at and not read yet. */
  #held = NOTHING;
  #failure: { readonly error: unknown } | undefined;

  constructor(
    /**
     * For its addresses and options; reads and writes go through this class.
     */
    readonly stream: Stream,
  ) {
    stream.notify(this);
  }

  /**
   * Gives the stream away, with the bytes that were looked at in front; this
   * object must not be used afterwards. Calls that wait never settle.
   */
  handOver(): Stream {
    if (this.#held.length === 0 && this.#failure === undefined) {
      return this.stream;
    }
    return new PeekedStream(this.stream, this.#held, this.#failure);
  }

  /** The present bytes; valid until the next `fill`. */
  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#held;
  }

  /** Takes `count` bytes from the front. */
  drop(count: number): void {
    this.#held = this.#held.subarray(count);
  }

  /**
   * Waits until this many bytes are here. May be called while another call
   * waits.
   *
   * @returns False when the peer has ended its side before.
   * @throws The errors that `endOf` distinguishes.
   */
  fill(bytes = 1): Promise<boolean> {
    if (this.#held.length >= bytes) return RESOLVED;
    if (this.#filling !== undefined) return this.#filling.promise;
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    const filling = { bytes, promise, resolve, reject };
    this.#filling = filling;
    this.#fillOn(filling);
    return promise;
  }

  /**
   * Waits for bytes and puts them into `into`, which must not be empty.
   *
   * @returns How many, or `null` when the peer has ended its side.
   * @throws What `endOf` tells apart. Settles after `close` too.
   */
  read(into: Uint8Array): Promise<number | null> {
    return new Promise((resolve, reject) => {
      const own = into as Uint8Array<ArrayBuffer>;
      this.#readOn(this.#reading = { into: own, resolve, reject });
    });
  }

  /** Writes a first part of `bytes`; @returns how long it was. */
  write(bytes: Uint8Array): Promise<number> {
    return new Promise((resolve, reject) => {
      const own = bytes as Uint8Array<ArrayBuffer>;
      this.#writeOn(this.#writing = { bytes: own, taken: 0, resolve, reject });
    });
  }

  /** Writes all of `bytes`. */
  async writeAll(bytes: Uint8Array): Promise<void> {
    let at = 0;
    while (at < bytes.length) at += await this.write(bytes.subarray(at));
  }

  /** Ends our side in order; settles when that has left. */
  closeWrite(): Promise<void> {
    return new Promise((resolve, reject) => {
      try {
        this.stream.closeWrite();
      } catch (error) {
        return reject(error);
      }
      const done = () => resolve();
      this.#writing = { bytes: NOTHING, taken: 0, resolve: done, reject };
      this.#writeOn(this.#writing);
    });
  }

  close(): void {
    this.stream.close();
    this.#over();
  }

  reset(): void {
    this.stream.reset();
    this.#over();
  }

  onReady(_hint: number): void {
    if (!this.stream.isOpen) return this.#over();
    if (this.#filling !== undefined) this.#fillOn(this.#filling);
    if (this.#reading !== undefined) this.#readOn(this.#reading);
    if (this.#writing !== undefined) this.#writeOn(this.#writing);
  }

  onFault(): void {
    this.reset();
  }

  #fillOn(filling: Filling): void {
    while (this.#held.length < filling.bytes) {
      const count = this.#readOnce(shared);
      if (count === WOULD_BLOCK) return;
      if (count === 0 || this.#failure !== undefined) break;
      this.#held = joinedBytes([this.#held, shared.subarray(0, count)]);
    }
    this.#filling = undefined;
    if (this.#held.length >= filling.bytes) filling.resolve(true);
    else if (this.#failure === undefined) filling.resolve(false);
    else filling.reject(this.#failure.error);
  }

  #readOn({ into, resolve, reject }: Reading): void {
    const held = this.#held;
    if (held.length > 0) {
      const run = held.subarray(0, into.length);
      into.set(run);
      this.drop(run.length);
      this.#reading = undefined;
      return resolve(run.length);
    }
    // A peek has a read under way already.
    if (this.#filling !== undefined) return;
    const count = this.#readOnce(into);
    if (count === WOULD_BLOCK) return;
    this.#reading = undefined;
    if (this.#failure === undefined) resolve(count || null);
    else reject(this.#failure.error);
  }

  /** @returns 0 also when it failed, see `#failure`. */
  #readOnce(into: Uint8Array<ArrayBuffer>): number {
    if (this.#failure !== undefined) return 0;
    try {
      return this.stream.read(into);
    } catch (error) {
      this.#failure = { error };
      return 0;
    }
  }

  #writeOn(writing: Writing): void {
    const { bytes, resolve, reject } = writing;
    try {
      if (writing.taken === 0 && bytes.length > 0) {
        writing.taken = this.stream.write(bytes);
        if (writing.taken === 0) return;
      }
      if (!this.stream.flush()) return;
      this.#writing = undefined;
      resolve(writing.taken);
    } catch (error) {
      this.#writing = undefined;
      reject(error);
    }
  }

  /** Also when another holder of the stream has closed it. */
  #over(): void {
    const [reading, filling] = [this.#reading, this.#filling];
    const writing = this.#writing;
    this.#reading = this.#filling = this.#writing = undefined;
    reading?.reject(closedError());
    filling?.reject(closedError());
    writing?.reject(closedError());
  }
}

const NOTHING = new Uint8Array(0);
const RESOLVED: Promise<boolean> = Promise.resolve(true);
