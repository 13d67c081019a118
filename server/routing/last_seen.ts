/**
 * When and from where agents that are gone were last seen, for refusals.
 *
 * @module
 */

import { hostOf } from "../../proto/peer/host_port.ts";
import type { Clock } from "../../proto/sync/clock.ts";

/**
 * Most identifiers remembered. Beyond it the longest-gone is forgotten, and its
 * refusals no longer contain when it was seen; an agent that reconnects under ever
 * new names must not fill memory.
 */
export const LAST_SEEN_MAX = 10_000;

/** When and from where something was last seen. */
interface Sighting {
  readonly atMs: number;
  readonly remoteAddress: string;
}

/** Remembers identifiers for a while. */
export class LastSeen {
  readonly #clock: Clock;
  // In order of departure, because `note` moves a key to the end.
  readonly #seen = new Map<string, Sighting>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Remembers that `key` was seen until now. */
  note(key: string, remoteAddress: string): void {
    this.#seen.delete(key);
    this.#seen.set(key, { atMs: this.#clock.now(), remoteAddress });
    if (this.#seen.size <= LAST_SEEN_MAX) return;
    const oldest = this.#seen.keys().next();
    if (!oldest.done) this.#seen.delete(oldest.value);
  }

  /** Whether it was here, and is remembered. */
  has(key: string): boolean {
    return this.#seen.has(key);
  }

  /** Such as `last seen 42 s ago from 10.0.0.7`, or `never seen`. */
  describe(key: string): string {
    const seen = this.#seen.get(key);
    if (seen === undefined) return "never seen";
    const ago = formatAge(this.#clock.now() - seen.atMs);
    return `last seen ${ago} ago from ${hostOf(seen.remoteAddress)}`;
  }
}

/** A duration in its largest whole unit, such as `42 s` or `3 h`. */
function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}
