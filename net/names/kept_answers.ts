/**
 * A cache of answers for as long as they may be kept, with one query for all
 * callers at the same time, and the last answer when there is no other (RFC
 * 8767): a name server that is silent for a while stops no caller whose name
 * was found before.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import { type FoundAddresses, LookupError } from "./resolver.ts";

/**
 * An answer is used for no longer, whatever its TTL: an operator who moves a
 * name in a hurry should not have to wait for an hour, and name servers have
 * caches of their own.
 */
export const FRESH_MS_MAX = 30_000;

/** The same for "there is no such name". */
export const UNKNOWN_MS_MAX = 5_000;

/** How long the last answer is kept (RFC 8767 §5 has one to three days). */
export const LAST_ANSWER_MS = 24 * 3_600_000;

/** How long a caller that could have the last answer waits for a newer one. */
export const STALE_AFTER_MS = 250;

/** After a failure there is no further query for so long. */
export const RETRY_MS = 2_000;

/** Names that are kept; whose use is longest ago goes first. */
export const NAMES_MAX = 4_096;

/** The result of a query; empty: there is no such name. */
export interface Finding {
  readonly addresses: readonly string[];
  /** For how long that is so. */
  readonly ttlMs: number;
}

/** What is known of a name. */
interface Entry {
  /** Empty: there is no such name. */
  addresses: readonly string[];
  freshUntilMs: number;
  keptUntilMs: number;
  /** Until then the last answer is given at once. */
  patienceUntilMs: number;
}

export class KeptAnswers {
  readonly #entries = new Map<string, Entry>();
  readonly #queries = new Map<string, Promise<FoundAddresses>>();

  constructor(private readonly timers: Timers) {}

  /** All may have changed: what is kept is the last answer from now on. */
  expire(): void {
    for (const [key, entry] of this.#entries) {
      if (entry.addresses.length === 0) this.#entries.delete(key);
      else entry.freshUntilMs = entry.patienceUntilMs = -Infinity;
    }
  }

  /**
   * @param ask Queries `key`; one call at a time for each.
   * @throws {LookupError}
   */
  find(
    key: string,
    host: string,
    ask: () => Promise<Finding>,
  ): Promise<FoundAddresses> {
    const nowMs = this.timers.now();
    const entry = this.#entries.get(key);
    if (entry !== undefined) {
      this.#keep(key, entry);
      if (nowMs < entry.freshUntilMs) return fresh(entry, host, nowMs);
    }
    const last = entry !== undefined && entry.addresses.length > 0 &&
        nowMs < entry.keptUntilMs
      ? entry
      : undefined;
    if (last !== undefined && nowMs < last.patienceUntilMs) {
      return Promise.resolve(lastAnswer(last));
    }
    const query = this.#queries.get(key) ?? this.#ask(key, host, ask);
    return last === undefined ? query : this.#orLast(query, last);
  }

  #ask(
    key: string,
    host: string,
    ask: () => Promise<Finding>,
  ): Promise<FoundAddresses> {
    const query = ask().then((finding) => {
      const entry = this.#entryOf(finding);
      this.#keep(key, entry);
      return fresh(entry, host, this.timers.now());
    }).finally(() => this.#queries.delete(key));
    this.#queries.set(key, query);
    return query;
  }

  #entryOf({ addresses, ttlMs }: Finding): Entry {
    const nowMs = this.timers.now();
    const freshMs = addresses.length === 0 ? UNKNOWN_MS_MAX : FRESH_MS_MAX;
    return {
      addresses,
      freshUntilMs: nowMs + Math.min(ttlMs, freshMs),
      keptUntilMs: nowMs + LAST_ANSWER_MS,
      patienceUntilMs: -Infinity,
    };
  }

  #keep(key: string, entry: Entry): void {
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    if (this.#entries.size <= NAMES_MAX) return;
    const [oldest] = this.#entries.keys();
    this.#entries.delete(oldest!);
  }

  /** The result of the query, or the last answer when that takes too long. */
  #orLast(
    query: Promise<FoundAddresses>,
    last: Entry,
  ): Promise<FoundAddresses> {
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        last.patienceUntilMs = this.timers.now() + RETRY_MS;
        resolve(lastAnswer(last));
      };
      const timer = this.timers.after(STALE_AFTER_MS, giveUp);
      query.then(resolve, (error) => {
        const isGone = error instanceof LookupError &&
          error.fault === "unknown";
        if (isGone) reject(error);
        else giveUp();
      }).finally(() => timer.cancel());
    });
  }
}

function fresh(
  { addresses, freshUntilMs }: Entry,
  host: string,
  nowMs: number,
): Promise<FoundAddresses> {
  if (addresses.length === 0) return Promise.reject(new LookupError(host));
  const freshForMs = Math.max(0, freshUntilMs - nowMs);
  return Promise.resolve({ addresses, freshForMs, isLastAnswer: false });
}

function lastAnswer({ addresses }: Entry): FoundAddresses {
  return { addresses, freshForMs: 0, isLastAnswer: true };
}
