/**
 * The machine's clock and timers.
 *
 * Nearly all timers here are deadlines of a second and more that are cancelled
 * long before they are due, several per connection; the platform takes some
 * 5 µs for each. So long ones share slots: setting or cancelling one is a set
 * operation, and the platform sees one timer per slot in use.
 *
 * @module
 */

import type { Timer, Timers } from "../proto/sync/clock.ts";

/** Timers below this are exact: they pace octets, they do not guard them. */
const EXACT_BELOW_MS = 1_000;

/** Longer ones fire up to this much late. */
const SLOT_MS = 100;

/** The longest delay the platform can wait; longer ones would fire at once. */
const DELAY_MS_MAX = 2 ** 31 - 1;

type Callback = () => void;

/** Timers that are due within the same moment. */
interface Slot {
  readonly callbacks: Set<Callback>;
  readonly platformTimer: ReturnType<typeof setTimeout>;
}

/** Slots in use, by number: `SLOT_MS` times that is when they are due. */
const slots = new Map<number, Slot>();

/** {@linkcode Timers} of this process. */
export const systemTimers: Timers = {
  now: () => performance.now(),
  after(delayMs, callback): Timer {
    if (delayMs >= EXACT_BELOW_MS) return afterSlot(delayMs, callback);
    const id = setTimeout(callback, delayMs);
    return { cancel: () => clearTimeout(id) };
  },
};

function afterSlot(delayMs: number, callback: Callback): Timer {
  const dueMs = performance.now() + Math.min(delayMs, DELAY_MS_MAX - SLOT_MS);
  const number = Math.ceil(dueMs / SLOT_MS);
  const slot = slots.get(number) ?? openSlot(number);
  // One function may be set twice; each setting is an entry of its own.
  const entry = () => callback();
  slot.callbacks.add(entry);
  return {
    cancel() {
      if (!slot.callbacks.delete(entry) || slot.callbacks.size > 0) return;
      clearTimeout(slot.platformTimer);
      slots.delete(number);
    },
  };
}

function openSlot(number: number): Slot {
  const callbacks = new Set<Callback>();
  const delayMs = number * SLOT_MS - performance.now();
  const platformTimer = setTimeout(() => {
    slots.delete(number);
    for (const entry of callbacks) {
      callbacks.delete(entry); // First: it may throw, or cancel others.
      entry();
    }
  }, delayMs);
  const slot = { callbacks, platformTimer };
  slots.set(number, slot);
  return slot;
}
