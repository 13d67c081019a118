/**
 * Rations what an unauthenticated peer may have done for it, until it has shown
 * who it is.
 *
 * The budgets of the engine are each about one kind of frame. This is about
 * what all of them are for: time on the one processor that carries everybody
 * else's bytes. An unauthenticated peer's bytes are taken in slices, with a
 * turn for others behind each; there are only so many of them; and the time
 * that they take is charged to where they come from.
 *
 * @module
 */

import type { Guest } from "../../net/admission/intake.ts";
import { UNAUTHENTICATED_BYTES_MAX } from "../../net/admission/intake_limits.ts";
import type { Transport, TransportEvents } from "../../net/stream/transport.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";

/**
 * Fifty of the smallest frames, each refused with words of its own: a
 * millisecond or two at the very worst.
 */
export const SLICE_BYTES = 512;

/**
 * What it may go on to say when it has been told that this is enough: what came
 * together with that. Everything is deciphered before it can be dropped, which
 * is the dearer half of a flood; so nobody reads the rest.
 */
export const LATE_BYTES_MAX: number = 32 * 1024;

/** What it is told has left the process by then. */
const FLUSH_MS = 5;

/** The next slice is for the next turn of the loop, or the one behind it. */
const TURN_MS = 0;

/** The part of `Guest` that is charged. */
export type Charged = Pick<
  Guest,
  "isUnauthenticated" | "takeWork" | "takeBytes" | "linger"
>;

/** @param over It was too much; called once, nothing more is delivered. */
export function meteredTransport(
  transport: Transport,
  guest: Charged,
  timers: Timers,
  over: (reason: string) => void,
): Transport {
  if (!guest.isUnauthenticated) return transport;
  return {
    remoteAddress: transport.remoteAddress,
    localAddress: transport.localAddress,
    alpn: transport.alpn,
    identity: transport.identity,
    start: (events) =>
      transport.start(
        new Meter(events, guest, timers, {
          over,
          close: () => {
            guest.linger();
            transport.close();
          },
        }),
      ),
    write: (bytes, done) => transport.write(bytes, done),
    closeWrite: () => transport.closeWrite(),
    close: () => transport.close(),
  };
}

/** Ways in which a connection ends. */
interface Endings {
  /** With words, and in order. */
  over(reason: string): void;
  /** At once. */
  close(): void;
}

/** See the module description. */
class Meter implements TransportEvents {
  readonly #events: TransportEvents;
  readonly #guest: Charged;
  readonly #timers: Timers;
  readonly #endings: Endings;
  /** Slices that wait for their turn. */
  #waiting: Uint8Array[] = [];
  #timer: Timer | undefined;
  #hasEnded = false;
  #isOver = false;
  #lateBytes = 0;

  constructor(
    events: TransportEvents,
    guest: Charged,
    timers: Timers,
    endings: Endings,
  ) {
    this.#events = events;
    this.#guest = guest;
    this.#timers = timers;
    this.#endings = endings;
  }

  onChunk(chunk: Uint8Array): void {
    if (this.#isOver) return this.#onLate(chunk.length);
    if (this.#waiting.length === 0) {
      if (!this.#guest.isUnauthenticated) return this.#events.onChunk(chunk);
      if (!this.#count(chunk.length)) return;
      this.#deliver(chunk.subarray(0, SLICE_BYTES));
      this.#keep(chunk.subarray(SLICE_BYTES));
    } else if (this.#count(chunk.length)) this.#keep(chunk);
  }

  onEnd(): void {
    if (this.#waiting.length === 0) this.#events.onEnd();
    else this.#hasEnded = true;
  }

  onClose(error: Error | undefined): void {
    this.#timer?.cancel();
    this.#waiting = [];
    this.#events.onClose(error);
  }

  #onLate(bytes: number): void {
    if (this.#lateBytes > LATE_BYTES_MAX) return;
    this.#lateBytes += bytes;
    if (this.#lateBytes <= LATE_BYTES_MAX) return;
    this.#timer = this.#timers.after(FLUSH_MS, () => this.#endings.close());
  }

  #count(bytes: number): boolean {
    if (this.#guest.takeBytes(bytes)) return true;
    this.#end(
      `it said more than ${UNAUTHENTICATED_BYTES_MAX} bytes, and not who it is`,
    );
    return false;
  }

  #deliver(slice: Uint8Array): void {
    const startMs = this.#timers.now();
    this.#events.onChunk(slice);
    if (!this.#guest.isUnauthenticated) return;
    if (this.#guest.takeWork(this.#timers.now() - startMs)) return;
    this.#end("unauthenticated peers from there made too much work");
  }

  /** Copies: the chunk is only good during the call. */
  #keep(bytes: Uint8Array): void {
    if (bytes.length === 0 || this.#isOver) return;
    for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
      this.#waiting.push(bytes.slice(at, at + SLICE_BYTES));
    }
    this.#timer ??= this.#timers.after(TURN_MS, this.#next);
  }

  readonly #next = () => {
    this.#timer = undefined;
    const slice = this.#waiting.shift();
    if (slice !== undefined) this.#deliver(slice);
    // Whoever is known now waits no longer.
    while (!this.#guest.isUnauthenticated && !this.#isOver) {
      const rest = this.#waiting.shift();
      if (rest === undefined) break;
      this.#events.onChunk(rest);
    }
    if (this.#isOver) return;
    if (this.#waiting.length > 0) {
      this.#timer = this.#timers.after(TURN_MS, this.#next);
    } else if (this.#hasEnded) this.#events.onEnd();
  };

  #end(reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#waiting = [];
    this.#timer?.cancel();
    this.#endings.over(reason);
  }
}
