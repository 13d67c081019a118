/**
 * What discovery is told when it starts.
 *
 * @module
 */

import type { Source } from "../../catalog/model/source.ts";
import type { ListenAddress } from "../../../net/listen/listeners.ts";

/** Of discovery, for servers that serve it. */
export interface DiscoveryServerOptions {
  /** Of the catalog; the first that has a service owns it. */
  readonly sources: readonly Source[];
  /** For programs on this machine, who need to prove nothing; absent: none. */
  readonly listen?: ListenAddress;
  /** How long agents have to come back after a start; 2 s unless given. */
  readonly settleMs?: number;
  /** Between two pushes while changes keep coming; see `discovery/push/debounce.ts`. */
  readonly windowMinMs: number;
  readonly windowMaxMs: number;
}
