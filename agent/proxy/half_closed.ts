/**
 * Ends connections of which one side is over while the other neither says
 * anything nor takes what it is told.
 *
 * Nothing is wrong with them as far as TCP can see: such a peer answers every
 * keepalive, and so they would stay for ever. Whoever is over on one side and
 * still says something, however little, may go on.
 *
 * All of them are looked at together now and then, by what they have carried in
 * all, so that no octet costs anything more.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";
import type { Joined } from "../../proto/transfer/transfer.ts";

/**
 * How long such a connection may be silent: five times what Linux gives one whose
 * program is gone (`tcp_fin_timeout`), half of what nginx gives any
 * (`proxy_timeout`).
 */
export const HALF_CLOSED_IDLE_MS = 300_000;

/** Looks at them so often in that time, which is how late an end may come. */
export const SWEEPS_PER_IDLE = 10;

/** How far a connection had come when it was last seen to move. */
interface Progress {
  octets: number;
  sinceMs: number;
}

/** See the module description. */
export class HalfClosedConnections {
  readonly #timers: Timers;
  readonly #onSilent: (joined: Joined) => void;
  readonly #progress = new Map<Joined, Progress>();
  #sweep: Timer | undefined;

  /** @param onSilent It is to be given up; called once for each. */
  constructor(timers: Timers, onSilent: (joined: Joined) => void) {
    this.#timers = timers;
    this.#onSilent = onSilent;
  }

  get size(): number {
    return this.#progress.size;
  }

  /** One of its sides is over now. */
  add(joined: Joined): void {
    const sinceMs = this.#timers.now();
    this.#progress.set(joined, { octets: joined.octets, sinceMs });
    this.#armSweep();
  }

  /** It is over whole, half-closed or not. */
  delete(joined: Joined): void {
    this.#progress.delete(joined);
  }

  /** Looks no more. */
  stop(): void {
    this.#sweep?.cancel();
    this.#sweep = undefined;
  }

  /** Most are over long before it fires, so it is not taken back for them. */
  #armSweep(): void {
    if (this.#sweep !== undefined || this.#progress.size === 0) return;
    const delayMs = HALF_CLOSED_IDLE_MS / SWEEPS_PER_IDLE;
    this.#sweep = this.#timers.after(delayMs, () => {
      this.#sweep = undefined;
      this.#look();
      this.#armSweep();
    });
  }

  #look(): void {
    const nowMs = this.#timers.now();
    for (const [joined, progress] of this.#progress) {
      const { octets } = joined;
      if (octets !== progress.octets) {
        progress.octets = octets;
        progress.sinceMs = nowMs;
      } else if (nowMs - progress.sinceMs >= HALF_CLOSED_IDLE_MS) {
        this.#progress.delete(joined);
        this.#onSilent(joined);
      }
    }
  }
}
