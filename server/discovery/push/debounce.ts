/**
 * When changes are told: the first at once, more of them in windows that grow
 * while changes keep coming.
 *
 * Pilot waits for quiet before it says anything, and then everybody knows of a
 * dead endpoint late. Here the first change opens a window and is told at once;
 * what comes in the window is told together when it ends, and opens the next
 * one, twice as long. A window in which nothing came ends that.
 *
 * Removals jump the queue: clients fail on what is gone, and only miss what is
 * new. They wait for a quarter of the window, or for the shortest one there is.
 * A service that keeps losing endpoints would then decide the pace for
 * everybody, so one that lost some a moment ago waits like all others.
 *
 * @module
 */

import { guarded } from "../../../platform/errors/internal_errors.ts";
import type { Timer, Timers } from "../../../proto/sync/clock.ts";

/** Shortest and longest window unless somebody says otherwise, milliseconds. */
export const WINDOW_MIN_MS = 50;
export const WINDOW_MAX_MS = 1_000;

/** The part of a window that a removal waits for. */
const REMOVAL_SHARE = 1 / 4;

/** So long after its last removal a service is not flapping any more. */
export const FLAPPING_MS = 10_000;

/** Services remembered for that; the first of more are forgotten early. */
export const FLAPPING_MAX = 10_000;

/** What {@linkcode Debounce} needs. */
export interface DebounceOptions {
  /** In milliseconds; equal ones make windows of one length. */
  readonly windowMinMs: number;
  readonly windowMaxMs: number;
  readonly timers: Timers;
  /**
   * Tells everything that changed up to now.
   *
   * @param done To be called when that is over: the next push waits for it.
   */
  push(done: () => void): void;
  /** A change waits for others; for the metrics. */
  merged?(): void;
}

/** See the module description. */
export class Debounce {
  readonly #options: DebounceOptions;
  /** Services that lost endpoints, and when; the latest last. */
  readonly #removals = new Map<string, number>();
  #windowMs: number;
  #openedMs = 0;
  /** Ends the window; absent when there is none, or its push goes on. */
  #timer: Timer | undefined;
  #isPushing = false;
  /** What came since the last push began. */
  #news: "none" | "change" | "removal" = "none";
  #isStopped = false;

  constructor(options: DebounceOptions) {
    this.#options = options;
    this.#windowMs = options.windowMinMs;
  }

  /** How long the window is that is open, or would be opened now. */
  get windowMs(): number {
    return this.#windowMs;
  }

  /**
   * Something changed.
   *
   * @param removedFrom Services that lost endpoints, or are gone.
   */
  changed(removedFrom: Iterable<string> = []): void {
    if (this.#isStopped) return;
    const isUrgent = this.#noteRemovals(removedFrom);
    if (this.#timer === undefined && !this.#isPushing) return this.#push();
    if (this.#news !== "none") this.#options.merged?.();
    if (this.#news === "removal") return;
    this.#news = isUrgent ? "removal" : "change";
    if (isUrgent && this.#timer !== undefined) this.#arm();
  }

  /** Nothing is told any more. */
  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** @returns Whether one of them is a surprise. */
  #noteRemovals(services: Iterable<string>): boolean {
    const nowMs = this.#options.timers.now();
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
    this.#isPushing = true;
    this.#openedMs = this.#options.timers.now();
    this.#arm();
    const done = () => {
      this.#isPushing = false;
      // The window may have ended meanwhile.
      if (this.#timer === undefined) this.#next();
    };
    // A push that never ends would be the last.
    guarded("catalog", () => this.#options.push(done), done);
  }

  #arm(): void {
    this.#timer?.cancel();
    const { timers, windowMinMs } = this.#options;
    const waitMs = this.#news === "removal"
      ? Math.max(REMOVAL_SHARE * this.#windowMs, windowMinMs)
      : this.#windowMs;
    const dueMs = this.#openedMs + waitMs;
    this.#timer = timers.after(Math.max(0, dueMs - timers.now()), () => {
      this.#timer = undefined;
      if (!this.#isPushing) this.#next();
    });
  }

  #next(): void {
    const { windowMinMs, windowMaxMs } = this.#options;
    if (this.#isStopped) return;
    if (this.#news !== "none") {
      this.#windowMs = Math.min(2 * this.#windowMs, windowMaxMs);
      this.#push();
    } else this.#windowMs = windowMinMs;
  }
}
