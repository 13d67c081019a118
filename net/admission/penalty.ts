/**
 * Slows a source down whose connections were ended for their own fault.
 *
 * A limit on one connection costs an attacker that connection, and it comes
 * back at once: each time that is a TLS handshake and the bytes up to the
 * fault, some milliseconds of the one processor that serves everybody. So a
 * source has a handful of faults; after that one connection a second is let in
 * from there, and the others wait or are closed before anything is done for them.
 *
 * Behind one address there may be honest peers, too, so nobody is shut out:
 *
 * 1. What is connected already is left alone.
 * 2. One try a second is let in whatever has happened, by lot (`waiting_room.ts`).
 * 3. A try that shows who it is lets in the next one at once: two hundred agents
 *    come back one behind the other, not one a second.
 * 4. Faults are forgotten: {@linkcode FAULTS_KEPT_MAX} say how long that takes.
 *
 * @module
 */

/**
 * Faults of a source that are put up with. No honest peer makes any; a program
 * with a defect makes some before somebody looks, and backs off in between.
 */
export const FAULTS_MAX = 3;

/** Forgotten per second: three at once, or one in four seconds for ever. */
export const FAULTS_FORGOTTEN_PER_SECOND = 0.25;

/**
 * More are not remembered: 20 s after its last fault a source is slow no longer.
 * With an attacker behind it that goes on, it stays so.
 */
export const FAULTS_KEPT_MAX = 8;

/** Between two tries of a source that is slowed down. */
export const TRY_PACE_MS = 1_000;

/**
 * What counts for less than a fault: to leave behind a handshake without having
 * shown who one is, which also a probe of TLS does or an agent that does not
 * trust the server. 24 at once, or two a second for ever.
 */
export const WEIGHT_OF_UNAUTHENTICATED = 1 / 8;

/** See the module description. Times are of one clock, in ms. */
export class Penalty {
  /** Somebody has shown who it is: another may be let in. */
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
    // Also where it had shown who it is, which let in the next at once.
    this.#nextTryMs = Math.max(this.#nextTryMs, nowMs + TRY_PACE_MS);
    return !wasOn;
  }

  /** Somebody wants to come in. @returns false: later, if at all. */
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

  /** A try has shown who it is. */
  ease(nowMs: number): void {
    if (!this.isOn(nowMs)) return;
    this.#nextTryMs = nowMs;
    this.onEased?.();
  }

  #forget(nowMs: number): void {
    const forgotten = (nowMs - this.#atMs) * FAULTS_FORGOTTEN_PER_SECOND / 1000;
    this.#faults = Math.max(0, this.#faults - forgotten);
    this.#atMs = nowMs;
  }
}
