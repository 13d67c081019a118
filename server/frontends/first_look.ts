/**
 * Reads a client's first bytes until they tell its protocol, without a promise:
 * new connections are many, and each should leave little behind.
 *
 * @module
 */

import { CONNECT_HEAD_TIMEOUT_MS } from "../../net/http1/connect_session.ts";
import { PeekedStream } from "../../net/stream/peeked_stream.ts";
import {
  type Stream,
  type StreamUser,
  WOULD_BLOCK,
} from "../../net/stream/stream.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { type SniffedProtocol, sniffProtocol } from "./sniff.ts";

/** One for all: what is read into it is copied before the next read. */
const shared = new Uint8Array(16 * 1024);

/** What the protocol is; the stream gives its first bytes once more. */
export type Sniffed = (protocol: SniffedProtocol, stream: Stream) => void;

/** See the module description. */
export class FirstLook implements StreamUser {
  readonly #timer: Timer;
  #first = new Uint8Array(0);
  #isOver = false;

  /**
   * @param sniffed Called at most once. Not called, and the stream closed, when
   *   the client leaves first or says too little for too long.
   */
  constructor(
    private readonly stream: Stream,
    timers: Timers,
    private readonly sniffed: Sniffed,
  ) {
    this.#timer = timers.after(CONNECT_HEAD_TIMEOUT_MS, () => this.#giveUp());
    stream.notify(this);
  }

  /** What is there already is looked at now. */
  start(): void {
    this.#look();
  }

  onReady(): void {
    this.#look();
  }

  onFault(): void {
    this.#giveUp();
  }

  #look(): void {
    while (!this.#isOver) {
      const count = this.#readOnce();
      if (count === WOULD_BLOCK) return;
      if (count === 0) return this.#giveUp();
      this.#keep(shared.subarray(0, count));
      const protocol = sniffProtocol(this.#first);
      // What does not tell yet is a part of HTTP/2's preface.
      if (protocol === undefined) continue;
      this.#isOver = true;
      this.#timer.cancel();
      this.sniffed(protocol, new PeekedStream(this.stream, this.#first));
    }
  }

  /** A client that is gone before it asked for anything needs no answer. */
  #readOnce(): number {
    try {
      return this.stream.read(shared);
    } catch {
      return 0;
    }
  }

  #keep(bytes: Uint8Array<ArrayBuffer>): void {
    const whole = new Uint8Array(this.#first.length + bytes.length);
    whole.set(this.#first);
    whole.set(bytes, this.#first.length);
    this.#first = whole;
  }

  #giveUp(): void {
    this.#isOver = true;
    this.#timer.cancel();
    this.stream.close();
  }
}
