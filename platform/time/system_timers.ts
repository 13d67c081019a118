/**
 * The machine's clock and timers.
 *
 * Nearly all timers here are cancelled long before they are due, several per
 * connection: deadlines of a second and more, and holds of some milliseconds.
 * The platform takes some 5 µs and half a kilobyte for each. So both kinds share
 * slots, and all slots of a kind share one timer of the platform: setting or
 * cancelling one links it into a ring or out of it.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { reportInternalError } from "../errors/internal_errors.ts";

/** Timers from here on are long: they guard bytes, they do not pace them. */
const LONG_MS = 1_000;

/** They fire up to this much late. */
const LONG_SLOT_MS = 100;

/** Short holds; there are few timers between these and long ones. */
const BRIEF_MS = { min: 2, max: 32 } as const;

/** As exact as the platform's own timers. */
const BRIEF_SLOT_MS = 1;

/** A process that is woken so much too late was kept from running. */
const HELD_UP_MS = 50;

/** The longest delay the platform can wait; longer ones would fire at once. */
const DELAY_MS_MAX = 2 ** 31 - 1;

/** {@linkcode Timers} of this process. */
export const systemTimers: Timers = {
  now: () => performance.now(),
  after(delayMs, callback): Timer {
    if (delayMs >= LONG_MS) return longTimers.add(delayMs, callback);
    if (delayMs >= BRIEF_MS.min && delayMs <= BRIEF_MS.max) {
      return briefTimers.add(delayMs, callback);
    }
    const id = setTimeout(run, delayMs, callback);
    return { cancel: () => clearTimeout(id) };
  },
};

/** Other due timers still fire. */
function run(callback: () => void): void {
  try {
    callback();
  } catch (error) {
    reportInternalError("timer", error);
  }
}

/** One setting of one timer. Spent, it refers to no callback any more. */
class SlotTimer implements Timer {
  /**
   * Neighbours in the ring of its slot; the timer itself when it is in none.
   */
  #next: SlotTimer = this;
  #previous: SlotTimer = this;
  #callback: (() => void) | undefined;

  /** A timer without a callback is the slot itself, the begin of its ring. */
  constructor(
    private readonly wheel: TimerWheel,
    slot?: SlotTimer,
    callback?: () => void,
  ) {
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
    if (this.#take() !== undefined) this.wheel.removed();
  }

  fire(): void {
    const callback = this.#take();
    this.wheel.removed();
    if (callback !== undefined) run(callback);
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

/** All timers of one kind. */
class TimerWheel {
  /** By number: a slot is due at its number times `#slotMs`. */
  readonly #slots = new Map<number, SlotTimer>();
  #timers = 0;
  #platformTimer: ReturnType<typeof setTimeout> | undefined;
  /** The slot that the platform wakes us for, or an earlier one, now empty. */
  #wakeSlot = Infinity;

  constructor(private readonly slotMs: number) {}

  add(delayMs: number, callback: () => void): Timer {
    const dueMs = performance.now() +
      Math.min(delayMs, DELAY_MS_MAX - this.slotMs);
    const number = Math.ceil(dueMs / this.slotMs);
    let slot = this.#slots.get(number);
    if (slot === undefined) {
      this.#slots.set(number, slot = new SlotTimer(this));
    }
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
    // Whole ones, for the platform cuts them off and would wake us early.
    const delayMs = Math.ceil(number * this.slotMs - performance.now());
    // A slot may be due already, and the platform warns about times in the
    // past.
    this.#platformTimer = setTimeout(this.#onWake, Math.max(0, delayMs));
  }

  /**
   * The platform runs timers before it reads sockets. A process that did not
   * run would mistake its own absence for silence of its peers, so it first
   * reads the waiting bytes: that takes two turns.
   */
  readonly #onWake = () => {
    const lateMs = performance.now() - this.#wakeSlot * this.slotMs;
    if (lateMs < HELD_UP_MS) return this.#fireDue();
    this.#platformTimer = setTimeout(() => {
      this.#platformTimer = setTimeout(this.#fireDue, 1);
    }, 1);
  };

  readonly #fireDue = () => {
    this.#wakeSlot = Infinity;
    const now = Math.floor(performance.now() / this.slotMs);
    const numbers = this.#numbersInUse();
    const due = numbers.filter((number) => number <= now);
    const next = numbers[due.length];
    // Before any timer fires: a callback may throw, and set or cancel others.
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

const longTimers = new TimerWheel(LONG_SLOT_MS);
const briefTimers = new TimerWheel(BRIEF_SLOT_MS);
