/**
 * What the log says of attempts to link that failed.
 *
 * Networks that are bad recover by themselves and are logged as events. A refusal stays
 * until a person does something, so it is a warning, which no `--v` hides; so is
 * that no server could be reached for a while, and that one can again. What comes
 * again unchanged is for the log to gather, for each address by itself.
 *
 * @module
 */

import type { Log } from "../../platform/log/log.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import { isDefinite } from "../identity/enrolment_error.ts";

/** So long without a link is more than a server's restart. */
export const OUTAGE_MS = 10_000;

export class AttemptLog {
  readonly #log: Log;
  readonly #clock: Clock;
  /** By address, the refusal that was logged last. */
  readonly #refusals = new Map<string, string>();
  /** Since when there is no link; `undefined` while there is one. */
  #unlinkedMs: number | undefined;
  /** It was a warning that there is none. */
  #isOutage = false;
  /** Links that came: what fails behind one is news. */
  #links = 0;

  constructor(log: Log, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
    this.#unlinkedMs = clock.now();
  }

  /** An attempt came to something: the next refusal is news. */
  linked(address: string): void {
    this.#refusals.delete(address);
    this.#links++;
  }

  /** @param servers How many are linked now. */
  counted(servers: number): void {
    if (servers === 0) {
      this.#unlinkedMs ??= this.#clock.now();
      return;
    }
    if (this.#isOutage) {
      this.#log.warn(`a server is linked again, after ${this.#outageText}`);
    }
    this.#isOutage = false;
    this.#unlinkedMs = undefined;
  }

  /** @param error What the attempt rejected with, if it did. */
  failed(
    reason: string,
    retryMs: number,
    error: unknown,
    address: string,
  ): void {
    const line = `${reason}; trying again in ${Math.round(retryMs)} ms`;
    const key = `link ${this.#links} ${address} ${reason}`;
    if (isDefinite(error) && this.#refusals.get(address) !== reason) {
      this.#refusals.set(address, reason);
      return this.#log.warn(line, {}, key);
    }
    this.#isOutage ||= this.#unlinkedForMs >= OUTAGE_MS;
    if (!this.#isOutage) return this.#log.event(line, {}, key);
    this.#log.warn(
      `no server is linked for ${this.#outageText}: ${line}`,
      {},
      key,
    );
  }

  get #unlinkedForMs(): number {
    const sinceMs = this.#unlinkedMs;
    return sinceMs === undefined ? 0 : this.#clock.now() - sinceMs;
  }

  get #outageText(): string {
    return `${Math.round(this.#unlinkedForMs / 1000)} s`;
  }
}
