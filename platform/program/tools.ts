/**
 * The tools that a program hands to its parts: log, timers and metrics. A part
 * asks for the narrowest interface that is enough.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import type { Log } from "../log/log.ts";
import type { MetricRegistry } from "../metrics/metrics.ts";

/** For a part that logs and waits. */
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
  /** Prefix of its metrics' names, such as `tunnel_server_`. */
  readonly prefix: string;
}
