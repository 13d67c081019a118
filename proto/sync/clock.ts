/**
 * Time as a thing that is handed in.
 *
 * Nothing in `proto/` reads the machine's clock or sets a timer; it uses this
 * interface, so that tests can move time by hand and a replayed schedule gives
 * the same run twice.
 *
 * @module
 */

/** Monotonic time in milliseconds. Only differences mean anything. */
export interface Clock {
  /** Milliseconds since an arbitrary start; never goes back. */
  now(): number;
}

/** A timer that was set. */
export interface Timer {
  /** Forgets the timer. Harmless when it has fired or was cancelled before. */
  cancel(): void;
}

/** A clock that can also call back. */
export interface Timers extends Clock {
  /** Calls `callback` once, `delayMs` from now. */
  after(delayMs: number, callback: () => void): Timer;
}
