/**
 * Slows down a source whose connections were ended for their own faults.
 *
 * A limit on one connection costs an attacker that connection, and it
 * reconnects at once: each time that is a TLS handshake and the bytes up to the
 * fault, some milliseconds of the one processor that serves all. So a source
 * has a handful of faults; after that, one connection a second is admitted from
 * there, and the others wait or are closed before any work is done.
 *
 * Behind one address there may be honest peers, too, so no source is shut out:
 *
 * 1. Connections that exist already are left alone.
 * 2. One try a second is admitted in any case, by lot ({@linkcode
 *    PenaltyQueue}).
 * 3. A try that authenticates admits the next one at once: two hundred agents
 *    reconnect one behind the other, not one a second.
 * 4. Faults are forgotten: {@linkcode FAULTS_KEPT_MAX} bounds how long that
 *    takes.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";

/**
 * Faults of a source that have no penalty. No honest peer makes any; a program
 * with a defect makes some before it is noticed, and backs off in between.
 */
export const FAULTS_MAX = 3;

/**
 * Faults forgiven each second: a source may make three at once, or one every
 * four seconds.
 */
export const FAULTS_FORGOTTEN_PER_SECOND = 0.25;

/**
 * More are not remembered: 20 s after its last fault a source is no longer
 * slowed down. If an attacker behind it goes on, it stays slow.
 */
export const FAULTS_KEPT_MAX = 8;

/** Time between two tries of a source that is slowed down. */
export const TRY_PACE_MS = 1_000;

/**
 * A handshake that ends unauthenticated counts for less than a fault: a probe
 * of TLS does that, and an agent that does not trust the server. A source may
 * make 24 at once, or two each second. A node that joins looks for its token's
 * authority by one, which the join takes back: a hundred nodes may be behind one
 * address.
 */
export const WEIGHT_OF_UNAUTHENTICATED = 1 / 8;

/** Times are of one clock, in ms. */
export class Penalty {
  /** A try has authenticated: another may be admitted. */
  onEased: (() => void) | undefined;
  #faults = 0;
  #atMs: number;
  #nextTryMs = -Infinity;

  constructor(nowMs: number) {
    this.#atMs = nowMs;
  }

  /** Whether there were too many faults lately. */
  isOn(nowMs: number): boolean {
    this.#forget(nowMs);
    return this.#faults > FAULTS_MAX;
  }

  /**
   * A connection was ended for its own fault.
   *
   * @returns Whether that was the one too many.
   */
  fault(nowMs: number, weight = 1): boolean {
    const wasOn = this.isOn(nowMs);
    this.#faults = Math.min(this.#faults + weight, FAULTS_KEPT_MAX);
    if (!this.isOn(nowMs)) return false;
    // Also where it had authenticated, which admitted the next at once.
    this.#nextTryMs = Math.max(this.#nextTryMs, nowMs + TRY_PACE_MS);
    return !wasOn;
  }

  /** A connection wants to be admitted. @returns false: later, if at all. */
  takeTry(nowMs: number): boolean {
    if (!this.isOn(nowMs)) return true;
    if (nowMs < this.#nextTryMs) return false;
    this.#nextTryMs = nowMs + TRY_PACE_MS;
    return true;
  }

  /** How long until there is a try, if nothing happens meanwhile. */
  waitMs(nowMs: number): number {
    return this.isOn(nowMs) ? Math.max(0, this.#nextTryMs - nowMs) : 0;
  }

  /** A try has authenticated. @param forgiven Faults that were none, then. */
  ease(nowMs: number, forgiven = 0): void {
    const isOn = this.isOn(nowMs);
    this.#faults = Math.max(0, this.#faults - forgiven);
    if (!isOn) return;
    this.#nextTryMs = nowMs;
    this.onEased?.();
  }

  #forget(nowMs: number): void {
    const forgotten = (nowMs - this.#atMs) * FAULTS_FORGOTTEN_PER_SECOND / 1000;
    this.#faults = Math.max(0, this.#faults - forgotten);
    this.#atMs = nowMs;
  }
}

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
interface PenaltyQueueOptions<Connection> {
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
