/**
 * Ends connections of which one side is over while the other neither says
 * anything nor takes what it is sent.
 *
 * Nothing is wrong with them as far as TCP can see: such a peer answers every
 * keepalive, and so they would stay for ever. Whoever is over on one side and
 * still says something, however little, may go on.
 *
 * All of them are looked at together now and then, by what they have carried in
 * all, so that no byte costs anything more.
 *
 * @module
 */

import type { Timer, Timers } from "../../../proto/sync/clock.ts";
import type { Joined } from "../../../proto/transfer/transfer.ts";
import { type ListItem, UnorderedList } from "./session_lists.ts";

/**
 * How long such a connection may be silent by default: five times what Linux gives one whose
 * program is gone (`tcp_fin_timeout`), half of what nginx gives any
 * (`proxy_timeout`).
 */
export const HALF_CLOSED_IDLE_MS = 300_000;

/** Looks at them so often in that time, which is how late an end may come, */
export const SWEEPS_PER_IDLE = 10;

/** and never more rarely, because a service may come to want another time. */
export const SWEEP_MS_MAX = 30_000;

/** How far a connection had come when it was last seen to move. */
export class HalfClosed implements ListItem {
  place = -1;
  bytes: number;
  sinceMs: number;

  constructor(readonly joined: Joined, nowMs: number) {
    this.bytes = joined.bytes;
    this.sinceMs = nowMs;
  }
}

export class HalfClosedConnections {
  readonly #all = new UnorderedList<HalfClosed>();
  #sweep: Timer | undefined;

  /**
   * @param idleMs How long they may be silent; 0: for ever.
   * @param onSilent It is to be given up; called once for each.
   */
  constructor(
    private readonly timers: Timers,
    private readonly idleMs: () => number,
    private readonly onSilent: (joined: Joined) => void,
  ) {}

  get size(): number {
    return this.#all.size;
  }

  /** One of its sides is over now. @returns For `delete`. */
  add(joined: Joined): HalfClosed {
    const one = new HalfClosed(joined, this.timers.now());
    this.#all.add(one);
    this.#armSweep();
    return one;
  }

  /** It is over whole. Harmless a second time. */
  delete(one: HalfClosed): void {
    this.#all.delete(one);
  }

  /** Looks no more. */
  stop(): void {
    this.#sweep?.cancel();
    this.#sweep = undefined;
  }

  /** Most are over long before it fires, so it is not taken back for them. */
  #armSweep(): void {
    if (this.#sweep !== undefined || this.#all.size === 0) return;
    const delayMs = sweepMs(this.idleMs());
    this.#sweep = this.timers.after(delayMs, () => {
      this.#sweep = undefined;
      this.#look();
      this.#armSweep();
    });
  }

  #look(): void {
    const nowMs = this.timers.now();
    const idleMs = this.idleMs() || Infinity;
    // Who is given up may be over at once, and others by it.
    for (const one of [...this.#all]) {
      const { bytes } = one.joined;
      if (bytes !== one.bytes) {
        one.bytes = bytes;
        one.sinceMs = nowMs;
      } else if (nowMs - one.sinceMs >= idleMs) {
        this.#all.delete(one);
        this.onSilent(one.joined);
      }
    }
  }
}

/** When to look again at who may be silent for so long. */
export function sweepMs(idleMs: number): number {
  return idleMs === 0
    ? SWEEP_MS_MAX
    : Math.min(idleMs / SWEEPS_PER_IDLE, SWEEP_MS_MAX);
}
