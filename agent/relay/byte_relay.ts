/**
 * One direction of a call that is passed on: bytes of messages from one body to
 * another, unchanged, however they are cut.
 *
 * The sender gets its credit back when the bytes have left on the other
 * side, so what waits here is bounded by a stream's window, and a reader that
 * stalls stalls its sender and nobody else.
 *
 * @module
 */

import type { CallBody } from "../../proto/grpc/call.ts";

const NO_HEAD = new Uint8Array(0);

export class ByteRelay {
  readonly #from: Pick<CallBody, "consumed">;
  #to: Pick<CallBody, "room" | "sendFrame" | "awaitRoom"> | undefined;
  readonly #queue: Uint8Array[] = [];
  #ending: (() => void) | undefined;

  constructor(from: Pick<CallBody, "consumed">) {
    this.#from = from;
  }

  /** Bytes that wait. */
  get waiting(): number {
    return this.#queue.reduce((sum, { length }) => sum + length, 0);
  }

  /** From now on bytes go there; what waited goes first. */
  open(to: Pick<CallBody, "room" | "sendFrame" | "awaitRoom">): void {
    this.#to = to;
    this.drain();
  }

  /** @param chunk Valid during the call. */
  push(chunk: Uint8Array): void {
    const sent = this.#queue.length === 0 ? this.#send(chunk) : 0;
    if (sent === chunk.length) return;
    this.#queue.push(chunk.slice(sent));
    this.#to?.awaitRoom();
  }

  /** There is room. */
  drain(): void {
    while (this.#queue.length > 0) {
      const first = this.#queue[0]!;
      const sent = this.#send(first);
      if (sent < first.length) {
        this.#queue[0] = first.subarray(sent);
        this.#to?.awaitRoom();
        return;
      }
      this.#queue.shift();
    }
    const ending = this.#to && this.#ending;
    if (ending === undefined) return;
    this.#ending = undefined;
    ending();
  }

  /** Calls `ending` when everything has left. */
  endWith(ending: () => void): void {
    this.#ending = ending;
    if (this.#queue.length === 0) this.drain();
  }

  #send(chunk: Uint8Array): number {
    const to = this.#to;
    if (to === undefined) return 0;
    let sent = 0;
    while (sent < chunk.length) {
      const size = Math.min(to.room, chunk.length - sent);
      if (size === 0) break;
      to.sendFrame(NO_HEAD, chunk.subarray(sent, sent + size));
      sent += size;
    }
    if (sent > 0) this.#from.consumed(sent);
    return sent;
  }
}
