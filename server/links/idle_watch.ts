/**
 * Ends connections of the agent port that hold a place and use it for nothing.
 *
 * A client that has business there calls at once: to link, to join, to renew, to
 * ask for health. Without a call a connection costs the server memory and a
 * descriptor, and its client nothing.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";

/** How often it is looked, and how long there may be no call. */
export const IDLE_CHECK_MS = 5_000;

/**
 * How long a peer may stay that never shows who it is, calls or not. A token is
 * reviewed in ten seconds, and joining takes less than that.
 */
export const UNAUTHENTICATED_LIFE_MS = 30_000;

/** RFC 9113 §7. */
const NO_ERROR = 0;

/** The part of `Connection` that is watched. */
export interface WatchedConnection {
  readonly openStreams: number;
  abort(code: number, reason: string): void;
}

/** What is to be known of a connection's peer. */
export interface IdleWatchOptions {
  readonly timers: Timers;
  /** It has yet to show who it is. */
  isUnauthenticated(): boolean;
  /** How long there may be no call; {@linkcode IDLE_CHECK_MS} unless given. */
  readonly idleMs?: number;
  /** It ends; for the log and the metrics. */
  ended(reason: string): void;
}

/** @returns How to stop watching. */
export function watchIdle(
  connection: WatchedConnection,
  { timers, isUnauthenticated, ended, idleMs = IDLE_CHECK_MS }:
    IdleWatchOptions,
): () => void {
  const startMs = timers.now();
  /** Since which look there has been no call. */
  let idleSinceMs = Infinity;
  let timer: Timer;
  const end = (reason: string) => {
    ended(reason);
    connection.abort(NO_ERROR, reason);
  };
  const look = () => {
    const nowMs = timers.now();
    if (connection.openStreams > 0) idleSinceMs = Infinity;
    else if (idleSinceMs === Infinity) idleSinceMs = nowMs;
    if (nowMs - idleSinceMs >= idleMs) {
      return end(`no call was open for ${idleMs / 1_000} s`);
    }
    if (isUnauthenticated() && nowMs - startMs >= UNAUTHENTICATED_LIFE_MS) {
      return end(
        `it did not show who it is for ${UNAUTHENTICATED_LIFE_MS / 1_000} s`,
      );
    }
    timer = timers.after(IDLE_CHECK_MS, look);
  };
  timer = timers.after(IDLE_CHECK_MS, look);
  return () => timer.cancel();
}
