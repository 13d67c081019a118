/**
 * How the next backend is chosen out of several that will do.
 *
 * @module
 */

import type { Backend } from "./backend.ts";

/** Uniform in [0, 1), such as `Math.random`. */
export type Random = () => number;

export interface BalancerStrategy {
  /**
   * There are other backends now than there were.
   *
   * @param ring In the order of the catalog.
   */
  reset(ring: readonly Backend[]): void;
  /** @returns One that is wanted, if any is. */
  choose(isWanted: (backend: Backend) => boolean): Backend | undefined;
  /** Whose turn is next, where there are turns; another process goes on there. */
  next?: Backend | undefined;
}
