/**
 * A stream of which something was read already: that is read first.
 *
 * @module
 */

import type { Socket } from "./socket.ts";
import { closedError, type Stream } from "./stream.ts";
import { StreamLayer } from "./stream_layer.ts";
import { atMost } from "../../platform/time/deadline.ts";
import type { Timers } from "../../proto/sync/clock.ts";

export class PeekedStream extends StreamLayer {
  #first: Uint8Array | undefined;
  /** Why reading failed behind it; a kernel reports that only once. */
  #failure: { readonly error: unknown } | undefined;

  /** @param first Belongs to this from now on. */
  constructor(
    stream: Stream,
    first: Uint8Array,
    failure?: { readonly error: unknown },
  ) {
    super(stream);
    this.#first = first.length > 0 ? first : undefined;
    this.#failure = failure;
  }

  override read(into: Uint8Array<ArrayBuffer>): number {
    if (this.#first !== undefined) return this.#readFirst(this.#first, into);
    if (this.#failure !== undefined) throw this.#failure.error;
    return this.below.read(into);
  }

  #readFirst(first: Uint8Array, into: Uint8Array<ArrayBuffer>): number {
    if (!this.isOpen) throw closedError();
    const count = Math.min(first.length, into.length);
    into.set(count === first.length ? first : first.subarray(0, count));
    this.#first = count === first.length ? undefined : first.subarray(count);
    return count;
  }
}

/**
 * How long we wait for a caller's first bytes. Bytes that are here by then save
 * a round trip; a target that speaks first waits that long.
 */
export const EARLY_WAIT_MS = 3;

/**
 * Waits for the first bytes for at most `waitMs`.
 *
 * @returns What came in time, which stays in `socket`; empty when nothing did.
 * @throws What reading the socket throws, when that happens in time.
 */
export async function firstBytes(
  socket: Socket,
  waitMs: number,
  timers: Timers,
): Promise<Uint8Array<ArrayBuffer>> {
  const looking = socket.fill();
  // Later bytes are for the next user of the stream.
  looking.catch(() => {});
  await atMost(timers, waitMs, looking);
  return socket.bytes;
}
