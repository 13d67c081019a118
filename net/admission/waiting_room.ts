/**
 * Where peers of sources that are slowed down wait for a try of their source.
 *
 * Whose turn it is is drawn by lot: first come, first served would serve
 * whoever fills the room. Who waits holds a place here and nothing else, and
 * whoever comes back as soon as it is refused has to wait instead.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";
import type { Brake } from "./brake.ts";

/**
 * Places for one source. With an attacker who keeps all but one of them taken an
 * honest peer is let in after half a minute, half of the times sooner.
 */
export const WAITING_MAX = 32;

interface Group<Visitor> {
  readonly waiting: Visitor[];
  timer: Timer | undefined;
}

/** What a `WaitingRoom` needs from outside. */
export interface WaitingRoomOptions<Visitor> {
  readonly timers: Timers;
  /** From 0 to below 1. */
  readonly random: () => number;
  /** It may come in. */
  readonly letIn: (visitor: Visitor) => void;
}

/** See the module description. */
export class WaitingRoom<Visitor> {
  readonly #options: WaitingRoomOptions<Visitor>;
  readonly #groups = new Map<Brake, Group<Visitor>>();

  constructor(options: WaitingRoomOptions<Visitor>) {
    this.#options = options;
  }

  /** Whether nobody more of a source can wait. */
  isFull(brake: Brake): boolean {
    return (this.#groups.get(brake)?.waiting.length ?? 0) >= WAITING_MAX;
  }

  /** @returns false: there is no place. */
  wait(brake: Brake, visitor: Visitor): boolean {
    if (this.isFull(brake)) return false;
    let group = this.#groups.get(brake);
    if (group === undefined) {
      group = { waiting: [], timer: undefined };
      this.#groups.set(brake, group);
      brake.onEased = () => this.#next(brake);
    }
    group.waiting.push(visitor);
    if (group.timer === undefined) this.#schedule(brake, group);
    return true;
  }

  /** It waits no longer. */
  leave(brake: Brake, visitor: Visitor): void {
    const waiting = this.#groups.get(brake)?.waiting;
    const at = waiting?.indexOf(visitor) ?? -1;
    if (at !== -1) waiting!.splice(at, 1);
  }

  #schedule(brake: Brake, group: Group<Visitor>): void {
    const { timers } = this.#options;
    group.timer = timers.after(brake.waitMs(timers.now()), () => {
      group.timer = undefined;
      this.#next(brake);
    });
  }

  #next(brake: Brake): void {
    const { timers, random, letIn } = this.#options;
    const group = this.#groups.get(brake);
    if (group === undefined) return;
    const { waiting } = group;
    while (waiting.length > 0 && brake.takeTry(timers.now())) {
      const at = Math.floor(random() * waiting.length);
      const [visitor] = waiting.splice(at, 1);
      letIn(visitor!);
    }
    group.timer?.cancel();
    if (waiting.length > 0) return this.#schedule(brake, group);
    this.#groups.delete(brake);
    brake.onEased = undefined;
  }
}
