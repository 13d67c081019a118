/**
 * How a client is treated beside what the protocol says.
 *
 * @module
 */

/** See the module description. */
export interface Treatment {
  /**
   * How long what is gone stays when nothing leads to it any more; see
   * `REMOVAL_PATIENCE_MS`.
   */
  readonly removalPatienceMs: number;
  /** Whether what it refused is offered again, ever more seldom. */
  readonly offersAgain: boolean;
}

/** Nothing beside what the protocol says. */
export const PLAIN_TREATMENT: Treatment = Object.freeze({
  removalPatienceMs: 0,
  offersAgain: false,
});
