/**
 * A cache of answers for a moment, with one query for all callers at the same
 * time, and the last answer when there is no other (RFC 8767): a name server
 * that is silent for a while stops no caller whose name was found before.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import { setNewest } from "../../proto/sync/newest.ts";

/**
 * How long an answer is used, "there is no such name" as well. The platform
 * tells no TTL; name servers have caches of their own, and a name that moves
 * should be found soon.
 */
export const FRESH_MS = 5_000;

/** How long the last answer is kept (RFC 8767 §5 has one to three days). */
export const LAST_ANSWER_MS = 24 * 3_600_000;

/**
 * How long a caller that could have the last answer waits for a newer one: less
 * than the shortest try of a connection, or its target would be blamed.
 */
export const NEWER_WITHIN_MS = 100;

/** For how long after a failure callers get the last answer at once. */
export const LAST_ANSWER_RETRY_MS = 2_000;

/** Names that are kept; the one whose last use is longest ago goes first. */
export const NAMES_MAX = 16_384;

type Addresses = readonly string[];

/** The knowledge about a name. */
interface Entry {
  /** Empty: there is no such name. */
  readonly addresses: Addresses;
  readonly keptUntilMs: number;
  /** Until then it is not looked up again. */
  freshUntilMs: number;
}

export class KeptAnswers {
  readonly #entries = new Map<string, Entry>();
  readonly #asking = new Map<string, Promise<Addresses>>();

  constructor(private readonly timers: Timers) {}

  /**
   * @param ask Asks for `key`; one call at a time for each.
   * @returns Nothing when there is no such name.
   * @throws What `ask` throws when there is no last answer.
   */
  find(key: string, ask: () => Promise<Addresses>): Promise<Addresses> {
    const nowMs = this.timers.now();
    const entry = this.#entries.get(key);
    if (entry !== undefined) setNewest(this.#entries, key, entry, NAMES_MAX);
    if (entry !== undefined && nowMs < entry.freshUntilMs) {
      return Promise.resolve(entry.addresses);
    }
    const asking = this.#asking.get(key) ?? this.#ask(key, ask);
    const hasLast = entry !== undefined && entry.addresses.length > 0 &&
      nowMs < entry.keptUntilMs;
    return hasLast ? this.#orLast(asking, entry) : asking;
  }

  #ask(key: string, ask: () => Promise<Addresses>): Promise<Addresses> {
    const asking = ask().then((addresses) => {
      const nowMs = this.timers.now();
      setNewest(this.#entries, key, {
        addresses,
        keptUntilMs: nowMs + LAST_ANSWER_MS,
        freshUntilMs: nowMs + FRESH_MS,
      }, NAMES_MAX);
      return addresses;
    }).finally(() => this.#asking.delete(key));
    this.#asking.set(key, asking);
    return asking;
  }

  /**
   * The result of a look-up, or the last answer when that fails or takes long.
   */
  #orLast(asking: Promise<Addresses>, last: Entry): Promise<Addresses> {
    return new Promise((resolve) => {
      const giveUp = () => {
        last.freshUntilMs = this.timers.now() + LAST_ANSWER_RETRY_MS;
        resolve(last.addresses);
      };
      const timer = this.timers.after(NEWER_WITHIN_MS, giveUp);
      asking.then(resolve, giveUp).finally(() => timer.cancel());
    });
  }
}
