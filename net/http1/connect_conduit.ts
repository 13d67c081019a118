/**
 * A connection to a frontend that has become a tunnel: a conduit that keeps
 * what arrives until somebody listens.
 *
 * @module
 */

import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
} from "../../proto/transfer/conduit.ts";

/** What came while nobody listened. */
interface Held {
  /** Bounded by what the socket delivers ahead: one read. */
  readonly chunks: Uint8Array[];
  ended: boolean;
  close?: ConduitEnd;
}

/** See the module description. */
export class ConnectConduit implements Conduit, ConduitEvents {
  readonly datagrams = false;
  readonly #socket: Conduit;
  #events: ConduitEvents | undefined;
  #held: Held | undefined = { chunks: [], ended: false };

  /** @param socket Whoever hears it passes its events on to this. */
  constructor(socket: Conduit) {
    this.#socket = socket;
  }

  // --- Towards the owner -----------------------------------------------------

  attach(events: ConduitEvents): void {
    if (this.#events !== undefined) {
      throw new TypeError("Cannot attach to a conduit twice");
    }
    this.#events = events;
    // Not now: whoever joins two conduits has yet to attach to the other one.
    queueMicrotask(() => this.#open(events));
  }

  write(chunk: Uint8Array): number {
    return this.#socket.write(chunk);
  }

  end(): void {
    this.#socket.end();
  }

  reset(reason: string, kind?: "reset" | "lost"): void {
    this.#socket.reset(reason, kind);
  }

  consumed(bytes: number): void {
    this.#socket.consumed(bytes);
  }

  // --- From the socket -------------------------------------------------------

  onData(chunk: Uint8Array): void {
    if (this.#held === undefined) this.#events!.onData(chunk);
    else this.#held.chunks.push(chunk.slice());
  }

  onEnd(): void {
    if (this.#held === undefined) this.#events!.onEnd();
    else this.#held.ended = true;
  }

  onClose(end: ConduitEnd): void {
    if (this.#held === undefined) this.#events!.onClose(end);
    else this.#held.close = end;
  }

  onWritable(): void {
    this.#events?.onWritable();
  }

  #open(events: ConduitEvents): void {
    const held = this.#held!;
    this.#held = undefined;
    for (const chunk of held.chunks) events.onData(chunk);
    if (held.ended) events.onEnd();
    if (held.close !== undefined) events.onClose(held.close);
  }
}
