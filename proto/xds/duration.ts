/**
 * `google.protobuf.Duration` as milliseconds, and back.
 *
 * @module
 */

import type { Duration } from "./xds_messages.ts";

/** `ms`, whole ones or not, as the message. */
export function durationOf(ms: number): Duration {
  const seconds = Math.floor(ms / 1000);
  return { seconds, nanos: Math.round((ms - seconds * 1000) * 1e6) };
}

/** Milliseconds of a message. */
export function msOf({ seconds = 0, nanos = 0 }: Duration): number {
  return seconds * 1000 + nanos / 1e6;
}
