/**
 * Which client is pushed next: each once, first come, first served, a few
 * milliseconds at a time.
 *
 * A push to a thousand clients takes longer than a link may wait for its turn,
 * so it is cut into slices. A client that is queued again while it waits keeps
 * its place, and gets the state of the moment of its turn. A client that is
 * queued during its own turn goes to the end of the queue.
 *
 * @module
 */

import { reportInternalError } from "../../../platform/errors/internal_errors.ts";
import { Slices } from "../../../platform/time/slices.ts";
import type { Timers } from "../../../proto/sync/clock.ts";

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
  /** In the order of their turns, with the time since when each waits. */
  readonly #waiting = new Map<Client, number>();
  readonly #slices: Slices;
  #drained: (() => void)[] = [];

  constructor(private readonly options: PushQueueOptions<Client>) {
    this.#slices = new Slices(options.timers, {
      hasMore: () => this.#waiting.size > 0,
      step: () => this.#pushNext(),
      done: () => this.#onDrained(),
    });
  }

  /** How many clients wait. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Queues one, unless it waits already. */
  add(client: Client): void {
    this.#queue(client);
    this.#slices.begin();
  }

  /** Queues one for a later slice: the running one is used up. */
  addLater(client: Client): void {
    this.#queue(client);
    this.#slices.beginLater();
  }

  /**
   * Queues many.
   *
   * @param drained Called when no client waits any more.
   */
  addAll(clients: Iterable<Client>, drained: () => void): void {
    for (const client of clients) this.#queue(client);
    this.#drained.push(drained);
    this.#slices.begin();
  }

  /** The client is gone. */
  remove(client: Client): void {
    this.#waiting.delete(client);
  }

  /** Forgets all clients. */
  stop(): void {
    this.#waiting.clear();
    this.#slices.stop();
    this.#drained = [];
  }

  #queue(client: Client): void {
    if (this.#waiting.has(client)) return;
    this.#waiting.set(client, this.options.timers.now());
  }

  /** @returns Whether a client was waiting. */
  #pushNext(): boolean {
    const [first] = this.#waiting;
    if (first === undefined) return false;
    const [client, sinceMs] = first;
    this.#waiting.delete(client);
    try {
      this.options.push(client, sinceMs);
    } catch (error) {
      // An internal error: neither the other clients nor the caller are to
      // blame.
      reportInternalError("stream", error);
    }
    return true;
  }

  #onDrained(): void {
    const drained = this.#drained;
    this.#drained = [];
    for (const call of drained) call();
  }
}
