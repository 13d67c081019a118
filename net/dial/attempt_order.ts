/**
 * The order in which several candidates are tried: those that have just failed
 * come last, so that a dead one does not cost its deadline each time.
 *
 * It knows a candidate only as a text.
 *
 * @module
 */

import type { Clock } from "../../proto/sync/clock.ts";
import { setNewest } from "../../proto/sync/newest.ts";

/** How long an address that failed is tried after the others. */
export const FAILED_MS = 30_000;

/** The same for one that refused: that takes no time, and is over soon. */
export const REFUSED_MS = 1_000;

/** Places whose turns are remembered. */
const REMEMBERED_MAX = 256;

/** The time and the outcome of each candidate's last try. */
export class AttemptOrder {
  #turn = 0;
  readonly #last = new Map<string, { turn: number; failingUntilMs: number }>();

  constructor(private readonly clock: Clock) {}

  /**
   * Those that have not just failed, then those longest not tried; of those that
   * never were, the first.
   */
  order<Item>(
    items: readonly Item[],
    keyOf: (item: Item) => string,
  ): Item[] {
    const now = this.clock.now();
    const rank = (item: Item) => {
      const last = this.#last.get(keyOf(item));
      const isFailing = now < (last?.failingUntilMs ?? -Infinity);
      return { isFailing, turn: last?.turn ?? 0 };
    };
    return items.map((item) => ({ item, ...rank(item) }))
      .sort((a, b) =>
        Number(a.isFailing) - Number(b.isFailing) || a.turn - b.turn
      )
      .map(({ item }) => item);
  }

  /** @param failingMs How long a failed candidate comes after the others. */
  took(key: string, failingMs: number): void {
    // Machines come and go behind a name; the one tried longest ago is
    // forgotten.
    setNewest(this.#last, key, {
      turn: ++this.#turn,
      failingUntilMs: failingMs === 0
        ? -Infinity
        : this.clock.now() + failingMs,
    }, REMEMBERED_MAX);
  }
}
