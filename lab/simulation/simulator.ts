/**
 * Virtual time for a whole tunnel in one thread: everything that happens is an
 * event, and the seed decides which of those that are due comes first.
 *
 * Between two events all microtasks run, as between two turns of a real event
 * loop. So nothing depends on the machine: the same seed gives the same trace,
 * and a trace is one number, the hash of all that was noted.
 *
 * Knows neither sockets nor tunnels.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { Prng } from "../../tests/support/memory/prng.ts";

/**
 * Rounds of microtasks given to each event. Promises of the product are chained
 * a few deep; a test compares traces with those of whole event loop turns, so
 * that this is known to be enough.
 */
const MICROTASK_ROUNDS = 16;

/** Events of one run; more means that it goes in circles. */
export const EVENTS_MAX = 3_000_000;

/** How a run ended. */
export type RunEnd = "done" | "idle" | "late" | "endless" | "failed";

/** Something that will happen. */
interface Entry {
  readonly atMs: number;
  /** Drawn: decides between events that are due at the same time. */
  readonly order: number;
  readonly label: string;
  /** Unset once it was cancelled. */
  callback: (() => void) | undefined;
  readonly isTimer: boolean;
}

/** Options of {@linkcode Simulator}. */
export interface SimulatorOptions {
  /** Keeps the trace as text, which is slow. */
  readonly keepsTrace?: boolean;
  /** Whole turns of the event loop instead of rounds of microtasks. */
  readonly turn?: () => Promise<void>;
}

/** See the module description. */
export class Simulator implements Timers {
  /** Draws for everything that happens; what is planned has its own. */
  readonly prng: Prng;
  readonly #trace: string[] | undefined;
  readonly #turn: (() => Promise<void>) | undefined;
  readonly #heap: Entry[] = [];
  readonly #codes = new Map<string, number>();
  #nowMs = 1_000;
  #timers = 0;
  #events = 0;
  #hash = 0x811c9dc5;
  #failure: string | undefined;
  /** Called behind each event and the microtasks that follow it. */
  onStep: () => void = () => {};

  constructor(seed: number, options: SimulatorOptions = {}) {
    this.prng = new Prng(seed);
    this.#trace = options.keepsTrace ? [] : undefined;
    this.#turn = options.turn;
  }

  /** The first thing that was found to be wrong. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** Stands for everything that was noted and when. */
  get hash(): number {
    return this.#hash >>> 0;
  }

  /** What was noted, if it is kept. */
  get trace(): readonly string[] {
    return this.#trace ?? [];
  }

  /** Events that have happened. */
  get events(): number {
    return this.#events;
  }

  /** Timers of the product that are set. */
  get pendingTimers(): number {
    return this.#timers;
  }

  now(): number {
    return this.#nowMs;
  }

  after(delayMs: number, callback: () => void): Timer {
    this.#timers++;
    const entry = this.#add("timer", delayMs, callback, true);
    return {
      cancel: () => {
        if (entry.callback === undefined) return;
        entry.callback = undefined;
        this.#timers--;
      },
    };
  }

  /** Something that the world does; not counted among the timers. */
  post(label: string, delayMs: number, callback: () => void): void {
    this.#add(label, delayMs, callback, false);
  }

  /** Whether something happens that has this chance, as one in `odds`. */
  chance(odds: number): boolean {
    return this.prng.below(odds) === 0;
  }

  /** Writes down what happened, for the hash and for people. */
  note(what: string, one = 0, other = 0): void {
    let code = this.#codes.get(what);
    if (code === undefined) {
      code = this.#codes.size + 1;
      this.#codes.set(what, code);
    }
    this.#mix(code);
    this.#mix(one);
    this.#mix(other);
    this.#trace?.push(`${this.#nowMs.toFixed(1)} ${what} ${one} ${other}`);
  }

  /** Something is wrong; the run stops behind this event. */
  fail(what: string): void {
    this.#trace?.push(`${this.#nowMs.toFixed(1)} FAILED: ${what}`);
    this.#failure ??= what;
  }

  /**
   * Lets things happen.
   *
   * @param isDone Looked at behind each event.
   * @param untilMs Virtual time that must not be passed.
   */
  async run(isDone: () => boolean, untilMs: number): Promise<RunEnd> {
    for (;;) {
      if (this.#failure !== undefined) return "failed";
      if (isDone()) return "done";
      const entry = this.#next();
      if (entry === undefined) return "idle";
      if (entry.atMs > untilMs) {
        this.#push(entry);
        return "late";
      }
      if (++this.#events > EVENTS_MAX) return "endless";
      this.#happen(entry);
      if (this.#turn !== undefined) await this.#turn();
      else for (let n = 0; n < MICROTASK_ROUNDS; n++) await undefined;
      this.onStep();
    }
  }

  #happen(entry: Entry): void {
    const callback = entry.callback!;
    entry.callback = undefined;
    if (entry.isTimer) this.#timers--;
    this.#nowMs = Math.max(this.#nowMs, entry.atMs);
    this.note(entry.label);
    try {
      callback();
    } catch (error) {
      // What nobody in the product has caught would end the process.
      this.fail(`uncaught: ${error instanceof Error ? error.stack : error}`);
    }
  }

  #mix(value: number): void {
    this.#hash = Math.imul(this.#hash ^ (value | 0), 0x01000193);
    this.#hash ^= this.#hash >>> 15;
  }

  #add(
    label: string,
    delayMs: number,
    callback: () => void,
    isTimer: boolean,
  ): Entry {
    const atMs = this.#nowMs + Math.max(0, delayMs);
    const order = this.prng.below(0x4000_0000);
    const entry = { atMs, order, label, callback, isTimer };
    this.#push(entry);
    return entry;
  }

  // A binary heap, the earliest entry in front.

  #push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(entry, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = entry;
  }

  /** The earliest entry that was not cancelled. */
  #next(): Entry | undefined {
    for (;;) {
      const first = this.#heap[0];
      if (first === undefined) return undefined;
      this.#removeFirst();
      if (first.callback !== undefined) return first;
    }
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    const size = heap.length;
    if (size === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= size) break;
      if (child + 1 < size && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
  }
}

function isBefore(one: Entry, other: Entry): boolean {
  return one.atMs < other.atMs ||
    (one.atMs === other.atMs && one.order < other.order);
}
