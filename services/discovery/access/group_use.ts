/**
 * How many streams are of each group of clients. A group without streams is kept
 * for clients that come back, up to a limit: clients choose their group
 * themselves, and the server keeps a view of the catalog for each.
 *
 * @module
 */

import type { Quota } from "./quota.ts";

/** Groups without a stream that are kept; then the older half goes. */
export const IDLE_GROUPS_MAX = 64;

/** The part of `Views` that is used here. */
export interface ForgettingViews {
  forget(keys: Iterable<string>): void;
}

/** See the module description. */
export class ClientGroupUse {
  readonly #streams = new Map<string, number>();
  /** The longest idle first. */
  readonly #idle = new Set<string>();

  constructor(private readonly views: ForgettingViews) {}

  /**
   * A stream joins a group, at the cost of a quota.
   *
   * @param before The group that it leaves, because rules have changed: that
   *   costs its node nothing.
   * @throws {GrpcError} RESOURCE_EXHAUSTED, unless it was of a group before.
   */
  join(quota: Quota, key: string, before?: string): void {
    const isKnown = this.#streams.has(key) || this.#idle.has(key);
    if (before === undefined) quota.joinGroup(key, isKnown);
    else {
      quota.moveGroup(before, key);
      this.#leave(before);
    }
    this.#idle.delete(key);
    this.#streams.set(key, (this.#streams.get(key) ?? 0) + 1);
  }

  /** A stream of the group is over. */
  leave(quota: Quota, key: string): void {
    quota.leaveGroup(key);
    this.#leave(key);
  }

  #leave(key: string): void {
    const count = this.#streams.get(key) ?? 0;
    if (count > 1) return void this.#streams.set(key, count - 1);
    this.#streams.delete(key);
    this.#idle.add(key);
    if (this.#idle.size <= IDLE_GROUPS_MAX) return;
    const old = [...this.#idle].slice(0, IDLE_GROUPS_MAX / 2);
    for (const key of old) this.#idle.delete(key);
    this.views.forget(old);
  }
}
