/**
 * Which client is pushed next: each once, first come, first served, a few
 * milliseconds at a time.
 *
 * A push to a thousand clients takes longer than a link may wait for its turn, so
 * it is cut into slices. A client that is queued again while it waits keeps its
 * place, and is sent what is true when its turn comes; a client that is queued
 * during its own turn is queued anew.
 *
 * @module
 */

import { reportInternalError } from "../../../platform/errors/internal_errors.ts";
import type { Timer, Timers } from "../../../proto/sync/clock.ts";

/** How long the event loop waits for a slice, milliseconds. */
export const SLICE_MS = 5;

/** What {@linkcode PushQueue} needs. */
export interface PushQueueOptions<Client> {
  readonly timers: Timers;
  /**
   * Pushes to one client; must not wait.
   *
   * @param sinceMs When it began to wait.
   */
  push(client: Client, sinceMs: number): void;
}

/** See the module description. */
export class PushQueue<Client> {
  readonly #options: PushQueueOptions<Client>;
  /** In the order of their turns, with the time since when each waits. */
  readonly #waiting = new Map<Client, number>();
  #drained: (() => void)[] = [];
  #timer: Timer | undefined;
  #isPushing = false;

  constructor(options: PushQueueOptions<Client>) {
    this.#options = options;
  }

  /** How many clients wait. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Queues one, unless it waits already. */
  add(client: Client): void {
    this.#queue(client);
    this.#begin();
  }

  /** Queues one for a later slice: the running one is used up. */
  addLater(client: Client): void {
    this.#queue(client);
    if (!this.#isPushing) this.#wait();
  }

  /**
   * Queues many.
   *
   * @param drained Called when no client waits any more.
   */
  addAll(clients: Iterable<Client>, drained: () => void): void {
    for (const client of clients) this.#queue(client);
    this.#drained.push(drained);
    this.#begin();
  }

  /** The client is gone. */
  remove(client: Client): void {
    this.#waiting.delete(client);
  }

  /** Forgets all clients. */
  stop(): void {
    this.#waiting.clear();
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#drained = [];
  }

  #queue(client: Client): void {
    if (this.#waiting.has(client)) return;
    this.#waiting.set(client, this.#options.timers.now());
  }

  #begin(): void {
    if (this.#timer === undefined && !this.#isPushing) this.#slice();
  }

  #slice(): void {
    const { timers, push } = this.#options;
    const untilMs = timers.now() + SLICE_MS;
    this.#isPushing = true;
    try {
      for (const [client, sinceMs] of this.#waiting) {
        this.#waiting.delete(client);
        try {
          push(client, sinceMs);
        } catch (error) {
          // Neither the other clients nor the caller are to blame.
          reportInternalError("stream", error);
        }
        if (timers.now() >= untilMs) break;
      }
    } finally {
      this.#isPushing = false;
    }
    if (this.#waiting.size > 0) return this.#wait();
    const drained = this.#drained;
    this.#drained = [];
    for (const call of drained) call();
  }

  #wait(): void {
    this.#timer ??= this.#options.timers.after(0, () => {
      this.#timer = undefined;
      this.#slice();
    });
  }
}
