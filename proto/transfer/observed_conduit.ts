/**
 * A conduit that reports to an observer how much it carried and when it ended.
 *
 * It is put around a conduit where every path passes once, so counting has one
 * place and the layers around it know nothing of it.
 *
 * @module
 */

import type { Conduit, ConduitEnd, ConduitEvents } from "./conduit.ts";

/** What is observed. Called on the hot path: count, do not think. */
export interface ConduitObserver {
  /** Bytes that came out of the conduit. */
  received(bytes: number): void;
  /** Bytes that were put into the conduit. */
  sent(bytes: number): void;
  /** Once, when the conduit is over. */
  ended(end: ConduitEnd): void;
}

export class ObservedConduit implements Conduit, ConduitEvents {
  readonly #inner: Conduit;
  readonly #observer: ConduitObserver;
  #events: ConduitEvents | undefined;

  constructor(inner: Conduit, observer: ConduitObserver) {
    this.#inner = inner;
    this.#observer = observer;
  }

  get datagrams(): boolean {
    return this.#inner.datagrams;
  }

  attach(events: ConduitEvents): void {
    this.#events = events;
    this.#inner.attach(this);
  }

  write(chunk: Uint8Array): number {
    const taken = this.#inner.write(chunk);
    this.#observer.sent(taken);
    return taken;
  }

  end(isGone?: boolean): void {
    this.#inner.end(isGone);
  }

  reset(reason: string, kind?: "reset" | "lost"): void {
    this.#inner.reset(reason, kind);
  }

  consumed(bytes: number): void {
    this.#inner.consumed(bytes);
  }

  onData(chunk: Uint8Array): void {
    this.#observer.received(chunk.length);
    this.#events!.onData(chunk);
  }

  onWritable(): void {
    this.#events!.onWritable();
  }

  onEnd(isGone?: boolean): void {
    this.#events!.onEnd(isGone);
  }

  onClose(end: ConduitEnd): void {
    this.#observer.ended(end);
    this.#events!.onClose(end);
  }
}
