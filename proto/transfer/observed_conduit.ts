/**
 * A conduit that counts what it carried, and reports that and its end to an
 * observer.
 *
 * It wraps a conduit at a place that every path passes once, so counting has
 * one place and other layers do not know it. The list of live conduits
 * (`platform/conduits`) extends this class, so a read passes no further layer.
 *
 * @module
 */

import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
  ConduitState,
} from "./conduit.ts";

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
  #events: ConduitEvents | undefined;
  #receivedBytes = 0;
  #sentBytes = 0;

  constructor(
    private readonly inner: Conduit,
    private readonly observer: ConduitObserver,
  ) {}

  get datagrams(): boolean {
    return this.inner.datagrams;
  }

  /** Bytes that came out of it. */
  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  /** Bytes that were put into it. */
  get sentBytes(): number {
    return this.#sentBytes;
  }

  get state(): ConduitState | undefined {
    return this.inner.state;
  }

  /** Bytes that wait in the transfer of this conduit. */
  get queuedBytes(): number {
    return this.#events?.queuedBytes ?? 0;
  }

  /** Whether an observer will learn of its end. */
  get isAttached(): boolean {
    return this.#events !== undefined;
  }

  attach(events: ConduitEvents): void {
    if (this.#events !== undefined) {
      throw new TypeError("Cannot attach to a conduit twice");
    }
    this.#events = events;
    this.inner.attach(this);
  }

  write(chunk: Uint8Array): number {
    const taken = this.inner.write(chunk);
    this.#sentBytes += taken;
    this.observer.sent(taken);
    return taken;
  }

  end(isGone?: boolean): void {
    this.inner.end(isGone);
  }

  /** These left it before it was a conduit: they went with its dial. */
  sentEarly(bytes: number): void {
    this.#sentBytes += bytes;
    this.observer.sent(bytes);
  }

  reset(reason: string, kind?: "reset" | "lost"): void {
    this.inner.reset(reason, kind);
  }

  consumed(bytes: number): void {
    this.inner.consumed(bytes);
  }

  onData(chunk: Uint8Array): void {
    this.#receivedBytes += chunk.length;
    this.observer.received(chunk.length);
    this.#events!.onData(chunk);
  }

  onWritable(): void {
    this.#events!.onWritable();
  }

  onEnd(isGone?: boolean): void {
    this.#events!.onEnd(isGone);
  }

  onClose(end: ConduitEnd): void {
    this.observer.ended(end);
    this.#events!.onClose(end);
  }
}
