/**
 * When changes are pushed: the first at once, later ones in windows that grow
 * while changes keep coming.
 *
 * Pilot waits for quiet before it pushes anything, and then every client learns
 * late of a dead endpoint. Here the first change opens a window and is pushed
 * at once; changes in the window are pushed together when it ends, and open the
 * next one, twice as long. After a window without changes it starts again with
 * the shortest one.
 *
 * Removals come first: clients fail on a removed endpoint, and only miss a new
 * one. A removal waits for a quarter of the window, or for the shortest window.
 * A service that keeps losing endpoints would then decide the pace for all
 * clients, so one that lost some a moment ago waits like other changes.
 *
 * @module
 */

import { guarded } from "../../../platform/errors/internal_errors.ts";
import type { Timer, Timers } from "../../../proto/sync/clock.ts";

/** Shortest and longest window by default, milliseconds. */
export const WINDOW_MIN_MS = 50;
export const WINDOW_MAX_MS = 1_000;

/** The part of a window that a removal waits for. */
const REMOVAL_SHARE = 1 / 4;

/** A service is flapping for this long after its last removal. */
export const FLAPPING_MS = 10_000;

/** Services remembered for that; beyond it the oldest are forgotten early. */
export const FLAPPING_MAX = 10_000;

/** What {@linkcode Debounce} needs. */
export interface DebounceOptions {
  /**
   * Lengths of windows in milliseconds; when both are equal, all windows have
   * one length.
   */
  readonly windowMinMs: number;
  readonly windowMaxMs: number;
  readonly timers: Timers;
  /**
   * Pushes everything that changed up to now.
   *
   * @param done To be called when that is over: the next push waits for it.
   */
  push(done: () => void): void;
  /** A change waits for others; for the metrics. */
  merged?(): void;
}

/** See the module description. */
export class Debounce {
  /** Services that lost endpoints, and when; the latest last. */
  readonly #removals = new Map<string, number>();
  /** The length of the open window, or of the next one. */
  #windowMs: number;
  #openedMs = 0;
  /** Ends the window; absent when there is none, or its push goes on. */
  #timer: Timer | undefined;
  #state: "idle" | "pushing" | "stopped" = "idle";
  /** The changes since the last push began. */
  #news: "none" | "change" | "removal" = "none";

  constructor(private readonly options: DebounceOptions) {
    this.#windowMs = options.windowMinMs;
  }

  /**
   * Something changed.
   *
   * @param removedFrom Services that lost endpoints, or are gone.
   */
  changed(removedFrom: Iterable<string> = []): void {
    if (this.#state === "stopped") return;
    const isUrgent = this.#noteRemovals(removedFrom);
    if (this.#timer === undefined && this.#state === "idle") {
      return this.#push();
    }
    if (this.#news !== "none") this.options.merged?.();
    if (this.#news === "removal") return;
    this.#news = isUrgent ? "removal" : "change";
    if (isUrgent && this.#timer !== undefined) this.#arm();
  }

  /** Nothing is pushed any more. */
  stop(): void {
    this.#state = "stopped";
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** @returns Whether one of them is not flapping. */
  #noteRemovals(services: Iterable<string>): boolean {
    const nowMs = this.options.timers.now();
    let isUrgent = false;
    for (const service of services) {
      const beforeMs = this.#removals.get(service) ?? -Infinity;
      if (nowMs - beforeMs > FLAPPING_MS) isUrgent = true;
      this.#removals.delete(service);
      this.#removals.set(service, nowMs);
    }
    for (const [service, atMs] of this.#removals) {
      const isOld = nowMs - atMs > FLAPPING_MS;
      if (!isOld && this.#removals.size <= FLAPPING_MAX) break;
      this.#removals.delete(service);
    }
    return isUrgent;
  }

  #push(): void {
    this.#news = "none";
    this.#state = "pushing";
    this.#openedMs = this.options.timers.now();
    this.#arm();
    const done = () => {
      if (this.#state !== "pushing") return;
      this.#state = "idle";
      // The window may have ended meanwhile.
      if (this.#timer === undefined) this.#next();
    };
    // A push that never ends would block all later pushes.
    guarded("catalog", () => this.options.push(done), done);
  }

  #arm(): void {
    this.#timer?.cancel();
    const { timers, windowMinMs } = this.options;
    const waitMs = this.#news === "removal"
      ? Math.max(REMOVAL_SHARE * this.#windowMs, windowMinMs)
      : this.#windowMs;
    const dueMs = this.#openedMs + waitMs;
    this.#timer = timers.after(Math.max(0, dueMs - timers.now()), () => {
      this.#timer = undefined;
      if (this.#state === "idle") this.#next();
    });
  }

  #next(): void {
    const { windowMinMs, windowMaxMs } = this.options;
    if (this.#news !== "none") {
      this.#windowMs = Math.min(2 * this.#windowMs, windowMaxMs);
      this.#push();
    } else this.#windowMs = windowMinMs;
  }
}
