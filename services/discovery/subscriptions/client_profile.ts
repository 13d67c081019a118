/**
 * How a client is served where the protocol leaves a choice.
 *
 * @module
 */

import type { InterimRoutes } from "../generate/interim_routes.ts";
import type { ByName } from "../view/view.ts";

/** See the module description. */
export interface ClientProfile {
  /**
   * How long a removed resource stays after nothing leads to it any more; see
   * `REMOVAL_PATIENCE_MS`.
   */
  readonly removalPatienceMs: number;
  /**
   * Whether the client has the endpoints whose versions it names on a new stream
   * (Delta). Envoy may name versions of endpoints that it has dropped, or that a
   * cluster still waits for (envoy#22418), and is sent them again.
   */
  readonly keepsEndpoints: boolean;
  /** Whether refused content is retried, at ever longer intervals. */
  readonly retriesNacked: boolean;
  /**
   * Routes to be sent between two states, so that the client fetches clusters
   * before it needs them; absent: none.
   */
  interimRoutesOf?(before: ByName, after: ByName): InterimRoutes | undefined;
}

/** The choices that the protocol suggests. */
export const PLAIN_PROFILE: ClientProfile = Object.freeze({
  removalPatienceMs: 0,
  keepsEndpoints: false,
  retriesNacked: false,
});
