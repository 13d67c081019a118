/**
 * A conduit that tells an observer how much it carried and when it ended.
 *
 * It stands between an agent's link and whoever asked for the conduit, so that
 * every road through the server is counted once, in one place.
 *
 * @module
 */

import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
} from "../proto/transfer/conduit.ts";

/** What is observed. Called on the hot path: count, do not think. */
export interface ConduitObserver {
  /** Octets from the agent's target. */
  fromAgent(octets: number): void;
  /** Octets towards the agent's target. */
  toAgent(octets: number): void;
  /** Once, when the conduit is over. */
  ended(end: ConduitEnd): void;
}

/** See the module description. */
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
    this.#observer.toAgent(taken);
    return taken;
  }

  end(): void {
    this.#inner.end();
  }

  reset(reason: string, kind?: "reset" | "lost"): void {
    this.#inner.reset(reason, kind);
  }

  consumed(octets: number): void {
    this.#inner.consumed(octets);
  }

  onData(chunk: Uint8Array): void {
    this.#observer.fromAgent(chunk.length);
    this.#events!.onData(chunk);
  }

  onWritable(): void {
    this.#events!.onWritable();
  }

  onEnd(): void {
    this.#events!.onEnd();
  }

  onClose(end: ConduitEnd): void {
    this.#observer.ended(end);
    this.#events!.onClose(end);
  }
}
