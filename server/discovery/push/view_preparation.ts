/**
 * Makes views before they are told, a few milliseconds at a time: that of
 * thousands of services takes a second, in which no link would have its turn.
 *
 * What one change touches is made at once; only a whole catalog, or a new kind
 * of client in front of one, takes longer than a slice.
 *
 * @module
 */

import type { Timer, Timers } from "../../../proto/sync/clock.ts";
import type { Audience } from "../generate/audience.ts";
import { SLICE_MS } from "./push_queue.ts";

/** The part of `Views` that is used here. */
export interface PreparedViews {
  /** One step for each service that is to be looked at. */
  preparing(audience: Audience): Iterator<void>;
}

/** See the module description. */
export class ViewPreparation {
  readonly #views: PreparedViews;
  readonly #timers: Timers;
  /** In the order of their turns, by key. */
  readonly #audiences = new Map<string, Audience>();
  #steps: Iterator<void> | undefined;
  #done: (() => void)[] = [];
  #timer: Timer | undefined;

  constructor(views: PreparedViews, timers: Timers) {
    this.#views = views;
    this.#timers = timers;
  }

  /** Whether views are being made: who wants one has to wait. */
  get isBusy(): boolean {
    return this.#timer !== undefined;
  }

  /**
   * Makes views as they are now.
   *
   * @param done Called when these and all others that were asked for are made;
   *   before this returns, if that is soon.
   */
  prepare(audiences: Iterable<Audience>, done: () => void): void {
    for (const audience of audiences) {
      this.#audiences.set(audience.key, audience);
    }
    this.#done.push(done);
    if (!this.isBusy) this.#slice();
  }

  /** Forgets what was asked for. */
  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#audiences.clear();
    this.#steps = undefined;
    this.#done = [];
  }

  #slice(): void {
    const untilMs = this.#timers.now() + SLICE_MS;
    while (this.#step()) {
      if (this.#timers.now() < untilMs) continue;
      this.#timer = this.#timers.after(0, () => {
        this.#timer = undefined;
        this.#slice();
      });
      return;
    }
    const done = this.#done;
    this.#done = [];
    for (const call of done) call();
  }

  /** @returns Whether there is more to do. */
  #step(): boolean {
    if (this.#steps === undefined) {
      const [first] = this.#audiences.values();
      if (first === undefined) return false;
      this.#audiences.delete(first.key);
      this.#steps = this.#views.preparing(first);
    }
    if (this.#steps.next().done) this.#steps = undefined;
    return true;
  }
}
