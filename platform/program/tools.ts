/**
 * What a program hands to its parts: where they write what happens, how they
 * wait, and where they count. A part asks for the narrowest face that does.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import type { Log } from "../log/log.ts";
import type { MetricRegistry } from "../metrics/metrics.ts";

/** For a part that says something, and waits. */
export interface Tools {
  readonly log: Log;
  readonly timers: Timers;
}

/** For a part that counts as well. */
export interface CountingTools extends Tools {
  readonly metrics: MetricRegistry;
}

/** For a part that several kinds of programs have. */
export interface NamedTools extends CountingTools {
  /** In front of the names of its metrics, such as `tunnel_server_`. */
  readonly prefix: string;
}
