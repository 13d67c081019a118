/**
 * Gives the handshakes of a port their turns, one after another.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";

/**
 * Between the beginnings of two handshakes. Each costs about as much, so this
 * slows no peer down, and other events have their turn between them.
 */
export const HANDSHAKE_PACE_MS = 1;

/**
 * Handshakes that wait before no more connections are accepted. The others wait
 * in the kernel, where they cost nothing. When ten thousand agents came at once
 * and all were accepted, each newcomer displaced the agent that had waited
 * longest, all tried again, and almost none got in.
 */
export const HANDSHAKES_WAITING_MAX = 1_024;

/**
 * The same by the wait of the last one, on a slow machine: a peer that gives up
 * before its turn has cost a place for nothing.
 */
export const HANDSHAKES_WAIT_MS_MAX = 1_500;

/** Fewer are no crowd, however slow the machine. */
const WAITING_MIN = 32;

/** Of each turn in the usual time between two of them. */
const NEWEST_SHARE = 1 / 16;

/** Whose handshake is to begin. */
export interface PendingHandshake {
  /** It takes no turn any more. */
  isGone(): boolean;
  begin(): void;
}

export class HandshakeQueue {
  /** No more than the limiter lets be unauthenticated. */
  readonly #waiting: PendingHandshake[] = [];
  #timer: Timer | undefined;
  #lastMs = -Infinity;
  /** The usual time between two turns, while some wait. */
  #turnMs = HANDSHAKE_PACE_MS;
  /** Callers that want to know when there is room again. */
  #wantsRoom = new Set<() => void>();

  constructor(private readonly timers: Timers) {}

  /** The queue is full. */
  get isFull(): boolean {
    return this.#waiting.length >= this.#waitingMax;
  }

  get #waitingMax(): number {
    const inTime = HANDSHAKES_WAIT_MS_MAX / this.#turnMs;
    return Math.min(HANDSHAKES_WAITING_MAX, Math.max(WAITING_MIN, inTime));
  }

  /** Calls `act` once, when half of them have had their turn. */
  whenRoom(act: () => void): void {
    this.#wantsRoom.add(act);
  }

  /** Begins it when it is its turn. */
  add(handshake: PendingHandshake): void {
    const sinceMs = this.timers.now() - this.#lastMs;
    if (this.#waiting.length === 0 && sinceMs >= HANDSHAKE_PACE_MS) {
      this.#lastMs = this.timers.now();
      return handshake.begin();
    }
    this.#waiting.push(handshake);
    this.#timer ??= this.timers.after(HANDSHAKE_PACE_MS, this.#next);
  }

  readonly #next = () => {
    this.#timer = undefined;
    // A connection that is gone takes no turn.
    let next = this.#waiting.shift();
    while (next?.isGone()) next = this.#waiting.shift();
    if (next !== undefined) {
      const nowMs = this.timers.now();
      this.#turnMs += (nowMs - this.#lastMs - this.#turnMs) * NEWEST_SHARE;
      this.#lastMs = nowMs;
      next.begin();
    }
    if (this.#waiting.length > 0) {
      this.#timer ??= this.timers.after(HANDSHAKE_PACE_MS, this.#next);
    }
    this.#tellOfRoom();
  };

  #tellOfRoom(): void {
    if (this.#wantsRoom.size === 0) return;
    if (this.#waiting.length > this.#waitingMax / 2) return;
    const wanted = this.#wantsRoom;
    this.#wantsRoom = new Set();
    for (const act of wanted) act();
  }
}
