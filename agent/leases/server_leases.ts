/**
 * Counts servers by their leases, as Konnectivity's agents do.
 *
 * A lease holds for so long after it was renewed. A renewal counts from when it
 * was seen here, not from what the server's clock said: nodes without a clock
 * of their own are off by years, and would find every lease expired.
 *
 * @module
 */

import { leaseEndMs } from "../../neighbours/kubernetes/leases.ts";
import {
  type ObjectChange,
  objectKeyOf,
} from "../../neighbours/kubernetes/object_copy.ts";
import type { Lease } from "../../neighbours/kubernetes/objects.ts";
import type { Clock } from "../../proto/sync/clock.ts";

export interface ServerLeasesOptions {
  readonly clock: Clock;
  /** Milliseconds since 1970: all there is to judge a lease by at first. */
  readonly wallClock: () => number;
  /** There may be more servers than before. */
  readonly onMore: () => void;
}

/** What is known of one lease. */
interface Known {
  readonly renewed: string;
  readonly endMs: number;
}

export class ServerLeases {
  readonly #options: ServerLeasesOptions;
  readonly #known = new Map<string, Known>();
  #isSynced = false;

  constructor(options: ServerLeasesOptions) {
    this.#options = options;
  }

  /**
   * Servers that hold a lease, at least one.
   *
   * @returns `undefined` until all leases were seen once.
   */
  get count(): number | undefined {
    if (!this.#isSynced) return undefined;
    const now = this.#options.clock.now();
    let count = 0;
    for (const { endMs } of this.#known.values()) if (endMs > now) count++;
    return Math.max(1, count);
  }

  /** For `ListWatch.onChanges`. */
  changed(changes: readonly ObjectChange<Lease>[]): void {
    const before = this.count;
    for (const change of changes) this.#note(change);
    if ((this.count ?? 0) > (before ?? 0)) this.#options.onMore();
  }

  /** For `ListWatch.onSynced`. */
  synced(): void {
    if (this.#isSynced) return;
    this.#isSynced = true;
    if (this.count! > 1) this.#options.onMore();
  }

  #note(change: ObjectChange<Lease>): void {
    const { object } = change;
    const key = objectKeyOf(object);
    if (change.type === "removed") return void this.#known.delete(key);
    const { clock, wallClock } = this.#options;
    const renewed = object.spec?.renewTime ?? object.spec?.acquireTime ?? "";
    const known = this.#known.get(key);
    if (known?.renewed === renewed) return;
    const wallEndMs = leaseEndMs(object);
    if (wallEndMs === undefined) return void this.#known.delete(key);
    const leftMs = known === undefined
      ? wallEndMs - wallClock()
      : object.spec!.leaseDurationSeconds! * 1000;
    const endMs = clock.now() + leftMs;
    this.#known.set(key, { renewed, endMs });
  }
}
