/**
 * How many streams are of each audience. What nobody is of any more is kept for
 * those who come back, up to a limit: clients say themselves which audience they
 * are, and a view of the catalog is kept for each.
 *
 * @module
 */

import type { Share } from "./share.ts";

/** Audiences without a stream that are kept; then the older half goes. */
export const IDLE_AUDIENCES_MAX = 64;

/** The part of `Views` that is used here. */
export interface ForgettingViews {
  forget(keys: Iterable<string>): void;
}

/** See the module description. */
export class AudienceUse {
  readonly #views: ForgettingViews;
  readonly #streams = new Map<string, number>();
  /** Since the longest first. */
  readonly #idle = new Set<string>();

  constructor(views: ForgettingViews) {
    this.#views = views;
  }

  /**
   * One stream more, of a share, is of this audience.
   *
   * @param before Of which it was: rules have changed, which is not its doing.
   * @throws {GrpcError} RESOURCE_EXHAUSTED, unless it was of one before.
   */
  enlist(share: Share, key: string, before?: string): void {
    const isKnown = this.#streams.has(key) || this.#idle.has(key);
    if (before === undefined) share.takeAudience(key, isKnown);
    else {
      share.moveAudience(before, key);
      this.#leave(before);
    }
    this.#idle.delete(key);
    this.#streams.set(key, (this.#streams.get(key) ?? 0) + 1);
  }

  /** One stream less. */
  leave(share: Share, key: string): void {
    share.giveAudience(key);
    this.#leave(key);
  }

  #leave(key: string): void {
    const count = this.#streams.get(key) ?? 0;
    if (count > 1) return void this.#streams.set(key, count - 1);
    this.#streams.delete(key);
    this.#idle.add(key);
    if (this.#idle.size <= IDLE_AUDIENCES_MAX) return;
    const old = [...this.#idle].slice(0, IDLE_AUDIENCES_MAX / 2);
    for (const key of old) this.#idle.delete(key);
    this.#views.forget(old);
  }
}
