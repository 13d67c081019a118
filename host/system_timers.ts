/**
 * The machine's clock and timers.
 *
 * Nearly all timers here are cancelled long before they are due, several per
 * connection; the platform takes some 5 µs and half a kilobyte for each. So they
 * share slots, and all slots share one timer of the platform: setting or
 * cancelling one links it into a ring or out of it. There are two such wheels,
 * one for what guards octets and may be late, one for what paces them.
 *
 * @module
 */

import type { Timer, Timers } from "../proto/sync/clock.ts";

/** Timers below this pace octets, they do not guard them. */
const SHORT_BELOW_MS = 1_000;

/** How late timers may be. */
const SLOT_MS = { short: 1, long: 100 } as const;

/** The longest delay the platform can wait; longer ones would fire at once. */
const DELAY_MS_MAX = 2 ** 31 - 1;

/** {@linkcode Timers} of this process. */
export const systemTimers: Timers = {
  now: () => performance.now(),
  after(delayMs, callback): Timer {
    const wheel = delayMs < SHORT_BELOW_MS ? shortTimers : longTimers;
    return wheel.add(delayMs, callback);
  },
};

/** One setting of one long timer. Spent, it refers to nothing any more. */
class SlotTimer implements Timer {
  readonly #wheel: TimerWheel;
  /** In the ring of its slot; itself when it is in none. */
  #next: SlotTimer = this;
  #previous: SlotTimer = this;
  #callback: (() => void) | undefined;

  /** Without a callback it stands for the slot itself, and begins its ring. */
  constructor(wheel: TimerWheel, slot?: SlotTimer, callback?: () => void) {
    this.#wheel = wheel;
    this.#callback = callback;
    if (slot === undefined) return;
    this.#next = slot;
    this.#previous = slot.#previous;
    slot.#previous.#next = this;
    slot.#previous = this;
  }

  /** The timer set first of those in the ring that this one begins. */
  get first(): SlotTimer | undefined {
    return this.#next === this ? undefined : this.#next;
  }

  cancel(): void {
    if (this.#take() !== undefined) this.#wheel.removed();
  }

  fire(): void {
    const callback = this.#take();
    this.#wheel.removed();
    callback?.();
  }

  #take(): (() => void) | undefined {
    const callback = this.#callback;
    this.#callback = undefined;
    this.#next.#previous = this.#previous;
    this.#previous.#next = this.#next;
    this.#next = this.#previous = this;
    return callback;
  }
}

/** All timers of one sort. */
class TimerWheel {
  readonly #slotMs: number;
  /** By number: `slotMs` times that is when a slot is due. */
  readonly #slots = new Map<number, SlotTimer>();
  #timers = 0;
  #platformTimer: ReturnType<typeof setTimeout> | undefined;
  /** The slot that the platform wakes us for, or an earlier one, now empty. */
  #wakeSlot = Infinity;

  /** @param slotMs How late timers may be. */
  constructor(slotMs: number) {
    this.#slotMs = slotMs;
  }

  add(delayMs: number, callback: () => void): Timer {
    const dueMs = performance.now() +
      Math.min(delayMs, DELAY_MS_MAX - this.#slotMs);
    const number = Math.ceil(dueMs / this.#slotMs);
    let slot = this.#slots.get(number);
    if (slot === undefined) this.#slots.set(number, slot = new SlotTimer(this));
    this.#timers++;
    if (number < this.#wakeSlot) this.#wakeAt(number);
    return new SlotTimer(this, slot, callback);
  }

  /** A timer has fired or was cancelled. Empty slots wait for their time. */
  removed(): void {
    this.#timers--;
    if (this.#timers > 0) return;
    this.#slots.clear();
    clearTimeout(this.#platformTimer);
    this.#wakeSlot = Infinity;
  }

  #wakeAt(number: number): void {
    clearTimeout(this.#platformTimer);
    this.#wakeSlot = number;
    const delayMs = number * this.#slotMs - performance.now();
    this.#platformTimer = setTimeout(this.#onWake, delayMs);
  }

  readonly #onWake = () => {
    this.#wakeSlot = Infinity;
    const now = Math.floor(performance.now() / this.#slotMs);
    const numbers = this.#numbersInUse();
    const due = numbers.filter((number) => number <= now);
    const next = numbers[due.length];
    // Before anything fires: a callback may throw, and set or cancel others.
    if (next !== undefined) this.#wakeAt(next);
    for (const number of due) this.#fire(number);
  };

  /** Ascending; forgets the empty slots. */
  #numbersInUse(): number[] {
    for (const [number, slot] of this.#slots) {
      if (slot.first === undefined) this.#slots.delete(number);
    }
    return [...this.#slots.keys()].sort((a, b) => a - b);
  }

  #fire(number: number): void {
    const slot = this.#slots.get(number);
    this.#slots.delete(number);
    // Always the first: a callback may cancel any of those that follow.
    for (let next = slot?.first; next !== undefined; next = slot?.first) {
      next.fire();
    }
  }
}

const shortTimers = new TimerWheel(SLOT_MS.short);
const longTimers = new TimerWheel(SLOT_MS.long);
