/**
 * How a client is treated beside what the protocol says.
 *
 * @module
 */

import type { ByName } from "../view/view.ts";

/** Routes to be told first, with clusters that they do not lead to yet. */
export interface InterimRoutes {
  readonly routes: ByName;
  /** By route: clusters that it names anew. */
  readonly clusters: ReadonlyMap<string, readonly string[]>;
}

/** See the module description. */
export interface ClientProfile {
  /**
   * How long what is gone stays when nothing leads to it any more; see
   * `REMOVAL_PATIENCE_MS`.
   */
  readonly removalPatienceMs: number;
  /** Whether what it refused is offered again, ever more seldom. */
  readonly retriesNacked: boolean;
  /**
   * What is told between two states of routes, so that the client has fetched
   * their clusters when it is to go there; absent: nothing.
   */
  interimRoutesOf?(before: ByName, after: ByName): InterimRoutes | undefined;
}

/** Nothing beside what the protocol says. */
export const PLAIN_PROFILE: ClientProfile = Object.freeze({
  removalPatienceMs: 0,
  retriesNacked: false,
});
