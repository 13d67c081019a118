/**
 * Reports when links should be checked: the machine's network has changed, or
 * this process did not run for a while.
 *
 * On a machine with changing containers the network changes all the time, so
 * changes are gathered for a moment, and after some of them their rate is
 * limited.
 *
 * @module
 */

import { NetworkChanges } from "../../net/poll/network_changes.ts";
import { LapseWatch } from "../../platform/time/loop_lag.ts";
import { TokenBucket } from "../../proto/streams/token_bucket.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";

/** An address and its route appear one after another. */
export const MACHINE_GATHER_MS = 100;

/**
 * The number of changes that a person with a cable causes, and that a busy
 * machine may cause.
 */
export const CHANGES = { burst: 10, perSecond: 0.2 } as const;

/** What it needs. */
interface MachineWatchOptions {
  readonly timers: Timers;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  /** Links should be looked at. @param why For the log. */
  readonly changed: (why: string) => void;
  /** Hears of the network; for tests. */
  readonly listen?: (onChange: () => void) => { close(): void } | undefined;
}

export class MachineWatch {
  readonly #network: { close(): void } | undefined;
  readonly #lapses: LapseWatch;
  readonly #bucket: TokenBucket;
  #gathering: Timer | undefined;

  constructor(private readonly options: MachineWatchOptions) {
    const { timers, wallClock, listen = NetworkChanges.listen } = options;
    this.#bucket = new TokenBucket(CHANGES, timers.now());
    this.#network = listen(() => this.#gather());
    this.#lapses = new LapseWatch(timers, wallClock, (ms) => {
      options.changed(
        `this process did not run, or the clock was set: ${
          Math.round(ms / 1000)
        } s`,
      );
    });
  }

  stop(): void {
    this.#network?.close();
    this.#lapses.stop();
    this.#gathering?.cancel();
  }

  #gather(): void {
    const { timers, changed } = this.options;
    this.#gathering ??= timers.after(MACHINE_GATHER_MS, () => {
      this.#gathering = undefined;
      if (this.#bucket.spend(timers.now())) changed("the network has changed");
    });
  }
}
