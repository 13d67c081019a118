/**
 * The last unanswered datagram of a client, kept so that it can go to another
 * endpoint when its first endpoint refuses it.
 *
 * A client of one datagram, such as a resolver, sends no second one from its
 * address that could be answered instead. Little is kept, because UDP may lose
 * datagrams.
 *
 * @module
 */

import type { Backend } from "../balancer/backend.ts";

/** The longest that is kept; questions that have one answer are shorter. */
export const UNANSWERED_BYTES_MAX = 4_096;

/** Of all sessions of a port together. */
export const UNANSWERED_TOTAL_BYTES_MAX: number = 8 * 1024 * 1024;

/**
 * How long it is kept: a refusal takes one round trip, and a late answer helps
 * no client.
 */
export const UNANSWERED_MS = 2_000;

/** Endpoints that one datagram is sent to at most. */
export const UNANSWERED_TRIES_MAX = 32;

/** Limit for all sessions of a port. */
export interface UnansweredBudget {
  bytes: number;
}

/** A refused datagram, and the backends that refused it. */
export interface RefusedDatagram {
  readonly bytes: Uint8Array;
  readonly by: ReadonlySet<Backend>;
}

export class UnansweredDatagram {
  /** Kept for the next one: most clients send many of the same length. */
  #room: Uint8Array = NOTHING;
  #length = -1;
  #sentMs = 0;

  constructor(private readonly budget: UnansweredBudget) {}

  /** It was sent. */
  keep(bytes: Uint8Array, nowMs: number): void {
    this.#length = -1;
    const { length } = bytes;
    if (length > this.#room.length && !this.#enlarge(length)) return;
    this.#room.set(bytes);
    this.#length = length;
    this.#sentMs = nowMs;
  }

  /** It counts as answered. */
  forget(): void {
    this.#length = -1;
  }

  /** Gives it up, and all room. @returns It, unless it is too old. */
  take(nowMs: number): Uint8Array | undefined {
    const isKept = this.#length >= 0 && nowMs - this.#sentMs <= UNANSWERED_MS;
    const datagram = isKept ? this.#room.subarray(0, this.#length) : undefined;
    this.budget.bytes -= this.#room.length;
    this.#room = NOTHING;
    this.#length = -1;
    return datagram;
  }

  #enlarge(length: number): boolean {
    const bytes = this.budget.bytes - this.#room.length + length;
    if (length > UNANSWERED_BYTES_MAX || bytes > UNANSWERED_TOTAL_BYTES_MAX) {
      return false;
    }
    this.budget.bytes = bytes;
    this.#room = new Uint8Array(length);
    return true;
  }
}

const NOTHING = new Uint8Array();
