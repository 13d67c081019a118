/**
 * What the log says of attempts to link that failed.
 *
 * Roads that are bad pass by themselves and are told as events. A refusal stays
 * until a person does something, so it is a warning, which no `--v` hides: once,
 * and again when the reason is another one or the agent was linked meanwhile.
 *
 * A server that is away is asked often: what has not changed is said again ever
 * more seldom, for each address by itself.
 *
 * @module
 */

import type { Log } from "../../host/process/log.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import { isDefinite } from "../enrol/enrol_error.ts";

/** How long the same words are not said again: at first, and at last. */
export const QUIET_MS = { first: 5_000, most: 300_000 } as const;

/** What was said last of one address. */
interface Said {
  /** The refusal that was told last. */
  refusal?: string;
  reason?: string;
  quietMs: number;
  untilMs: number;
}

/** See the module description. */
export class AttemptLog {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #said = new Map<string, Said>();

  constructor(log: Log, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  /** An attempt came to something: the next refusal is news. */
  linked(address: string): void {
    this.#said.delete(address);
  }

  /** @param error What the attempt rejected with, if it did. */
  failed(
    reason: string,
    retryMs: number,
    error: unknown,
    address: string,
  ): void {
    const said = this.#saidOf(address);
    const line = `${reason}; trying again in ${Math.round(retryMs)} ms`;
    if (isDefinite(error) && reason !== said.refusal) {
      said.refusal = reason;
      this.#quiet(said, reason);
      return this.#log.warn(line);
    }
    if (reason === said.reason && this.#clock.now() < said.untilMs) return;
    this.#quiet(said, reason);
    this.#log.event(line);
  }

  #saidOf(address: string): Said {
    let said = this.#said.get(address);
    if (said === undefined) {
      said = { quietMs: QUIET_MS.first, untilMs: 0 };
      this.#said.set(address, said);
    }
    return said;
  }

  #quiet(said: Said, reason: string): void {
    said.quietMs = reason === said.reason
      ? Math.min(said.quietMs * 2, QUIET_MS.most)
      : QUIET_MS.first;
    said.reason = reason;
    said.untilMs = this.#clock.now() + said.quietMs;
  }
}
