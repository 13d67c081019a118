/**
 * Gives the handshakes of a port their turns, one after another.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";

/**
 * Between the beginnings of two handshakes. Each costs about as much, so this
 * slows no peer down; but events that come in between have their turn in
 * between.
 */
export const HANDSHAKE_PACE_MS = 1;

/** Whose handshake is to begin. */
export interface PendingHandshake {
  /** It takes no turn any more. */
  isGone(): boolean;
  begin(): void;
}

export class HandshakeQueue {
  readonly #timers: Timers;
  /** No more than the limiter lets be unauthenticated. */
  readonly #waiting: PendingHandshake[] = [];
  #timer: Timer | undefined;
  #lastMs = -Infinity;

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  /** Begins it when it is its turn. */
  add(handshake: PendingHandshake): void {
    const sinceMs = this.#timers.now() - this.#lastMs;
    if (this.#waiting.length === 0 && sinceMs >= HANDSHAKE_PACE_MS) {
      this.#lastMs = this.#timers.now();
      return handshake.begin();
    }
    this.#waiting.push(handshake);
    this.#timer ??= this.#timers.after(HANDSHAKE_PACE_MS, this.#next);
  }

  readonly #next = () => {
    this.#timer = undefined;
    // A connection that is gone takes no turn.
    let next = this.#waiting.shift();
    while (next?.isGone()) next = this.#waiting.shift();
    if (next === undefined) return;
    this.#lastMs = this.#timers.now();
    next.begin();
    if (this.#waiting.length === 0) return;
    this.#timer ??= this.#timers.after(HANDSHAKE_PACE_MS, this.#next);
  };
}
