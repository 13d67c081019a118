/**
 * `GET /v1/watch`: server-sent events for a screen that follows a server. Each
 * has a name, and JSON as its data.
 *
 * A watcher is sent a `status` each second, and of the lists that it asked for
 * (`?lists=nodes,conduits,events`) what changed since: whole items by key, and
 * keys that are gone. The first of each list has everything (`isWhole`).
 * A watcher that reads slower than that gets fewer, never a queue.
 *
 * @module
 */

import type { ConduitInfo } from "./conduit_answer.ts";
import type { EventInfo } from "./event_answer.ts";
import type { NodeSummary } from "./node_answer.ts";
import type { StatusAnswer } from "./status_answer.ts";

/** Changes of one list. */
export interface ListChange<T> {
  readonly isWhole: boolean;
  readonly changed: readonly T[];
  /** Names of nodes, ids of conduits. */
  readonly gone: readonly string[];
}

/** By name of the event. */
export interface WatchEvents {
  readonly status: StatusAnswer;
  readonly nodes: ListChange<NodeSummary>;
  /** The biggest ones by rate, at most 200. */
  readonly conduits: ListChange<ConduitInfo>;
  readonly events: readonly EventInfo[];
}
