/**
 * Waits in the kernel for the next event of one exchange, in place of sleeping
 * in the platform's event loop.
 *
 * While one request after another goes from one socket to another, each answer
 * comes after some 100 µs, and the way through the platform's loop to sleep and
 * back costs as much: beside that, a request took 1.2 times as long at 1.2 times
 * the CPU. Where more goes on, events gather while this thread is on that way,
 * so one wake-up serves several of them: there a short wait is none of use.
 *
 * It knows neither what is waited for nor who is notified.
 *
 * @module
 */

import { nextTick } from "node:process";
import { setImmediate } from "node:timers";
import { lastError, type LibC } from "../libc/libc.ts";
import { Errno } from "../libc/system_error.ts";

/**
 * Timers, signals and the platform's sockets wait no longer than that for their
 * turn; an answer from another program of this machine comes earlier.
 */
const WAIT_US = 150;

/** The event loop has its turn as often as that in any case. */
const TURN_MS = 1;

/** Events in a row that belong to one exchange. */
const EVENTS_OF_EXCHANGE_MIN = 4;

/** In one turn. With more, it is bulk, whose bytes may gather as well. */
const BYTES_OF_EXCHANGE_MAX = 16 * 1024;

/** So many waits in a row without an event are the last. */
const VAIN_WAITS_MAX = 4;

/** System call by number, the same on every architecture. Linux 5.11. */
const EPOLL_PWAIT2 = 441n;
const NO_MASK = null;
const MASK_BYTES = 8n;

export class ShortWait {
  /** `struct timespec` */
  readonly #duration = new Uint8Array(
    new BigInt64Array([0n, BigInt(WAIT_US * 1000)]).buffer,
  );
  /** Until the kernel has refused one. */
  #isPossible = true;
  /** The two descriptors that had an event last. */
  #one = -1;
  #other = -1;
  /** Events in a row that were theirs. */
  #events = 0;
  /** Begins as if it had been in vain: only a wake-up soon after shows that it pays. */
  #vainWaits = VAIN_WAITS_MAX;
  #sleepsSince = 0;
  #turnSince = 0;

  constructor(private readonly library: LibC) {}

  /** A descriptor had an event. */
  saw(descriptor: number): void {
    if (descriptor === this.#one || descriptor === this.#other) {
      this.#events++;
      return;
    }
    this.#other = this.#one;
    this.#one = descriptor;
    this.#events = 0;
  }

  /** So many bytes were read or written since the last wait. */
  moved(bytes: number): void {
    if (bytes > BYTES_OF_EXCHANGE_MAX) this.#events = 0;
  }

  /** Whether the next event is likely to come within a short wait. */
  get isWorthIt(): boolean {
    return this.#isPossible && this.#events >= EVENTS_OF_EXCHANGE_MIN &&
      this.#vainWaits < VAIN_WAITS_MAX;
  }

  /** This thread is about to sleep in the platform's loop. */
  sleeps(): void {
    this.#sleepsSince = performance.now();
  }

  /** An event has ended the sleep. */
  woke(): void {
    const sleptMs = performance.now() - this.#sleepsSince;
    if (sleptMs < WAIT_US / 1000) this.#vainWaits = 0;
  }

  /**
   * Runs `task`, which guards itself, as soon as all microtasks are done: what
   * they write is what the other end answers.
   */
  afterMicrotasks(task: () => void): void {
    const now = performance.now();
    if (now - this.#turnSince < TURN_MS) {
      // One that is asked for outside of a microtask runs before all of them.
      queueMicrotask(() => nextTick(task));
      return;
    }
    this.#turnSince = now;
    setImmediate(task);
  }

  /** As epoll_wait(2), with a short wait. @returns How many events there are. */
  wait(epoll: number, events: Uint8Array<ArrayBuffer>, max: number): number {
    const count = Number(
      this.library.epoll_pwait2(
        EPOLL_PWAIT2,
        epoll,
        events,
        max,
        this.#duration,
        NO_MASK,
        MASK_BYTES,
      ),
    );
    if (count > 0) this.#vainWaits = 0;
    else if (count === 0) this.#vainWaits++;
    // Older kernels do not have it, and containers may forbid it.
    else if (lastError(this.library) !== Errno.EINTR) this.#isPossible = false;
    return Math.max(0, count);
  }
}
