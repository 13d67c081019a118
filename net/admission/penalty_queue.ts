/**
 * Connections of sources that are slowed down, waiting for a try of their
 * source.
 *
 * The next one is drawn by lot: first come, first served would serve the peer
 * that fills the queue. A waiting connection holds a place here and nothing
 * else, and one that reconnects as soon as it is refused has to wait instead.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";
import type { Penalty } from "./penalty.ts";

/**
 * Places for one source. With an attacker that holds all but one of them an
 * honest peer is admitted after half a minute, half of the times sooner.
 */
export const PENALTY_WAITING_MAX = 32;

interface Group<Connection> {
  readonly waiting: Connection[];
  timer: Timer | undefined;
}

/** What a `PenaltyQueue` needs from outside. */
export interface PenaltyQueueOptions<Connection> {
  readonly timers: Timers;
  /** From 0 to below 1. */
  readonly random: () => number;
  /** It is admitted. */
  readonly admit: (connection: Connection) => void;
}

export class PenaltyQueue<Connection> {
  readonly #groups = new Map<Penalty, Group<Connection>>();

  constructor(private readonly options: PenaltyQueueOptions<Connection>) {}

  /** Whether no further connection of a source can wait. */
  isFull(penalty: Penalty): boolean {
    return (this.#groups.get(penalty)?.waiting.length ?? 0) >=
      PENALTY_WAITING_MAX;
  }

  /** @returns false: there is no place. */
  wait(penalty: Penalty, connection: Connection): boolean {
    if (this.isFull(penalty)) return false;
    let group = this.#groups.get(penalty);
    if (group === undefined) {
      group = { waiting: [], timer: undefined };
      this.#groups.set(penalty, group);
      penalty.onEased = () => this.#next(penalty);
    }
    group.waiting.push(connection);
    if (group.timer === undefined) this.#schedule(penalty, group);
    return true;
  }

  /** It waits no longer. */
  leave(penalty: Penalty, connection: Connection): void {
    const waiting = this.#groups.get(penalty)?.waiting;
    const at = waiting?.indexOf(connection) ?? -1;
    if (at !== -1) waiting!.splice(at, 1);
  }

  #schedule(penalty: Penalty, group: Group<Connection>): void {
    const { timers } = this.options;
    group.timer = timers.after(penalty.waitMs(timers.now()), () => {
      group.timer = undefined;
      this.#next(penalty);
    });
  }

  #next(penalty: Penalty): void {
    const { timers, random, admit } = this.options;
    const group = this.#groups.get(penalty);
    if (group === undefined) return;
    const { waiting } = group;
    while (waiting.length > 0 && penalty.takeTry(timers.now())) {
      const at = Math.floor(random() * waiting.length);
      const [connection] = waiting.splice(at, 1);
      admit(connection!);
    }
    group.timer?.cancel();
    if (waiting.length > 0) return this.#schedule(penalty, group);
    this.#groups.delete(penalty);
    penalty.onEased = undefined;
  }
}
