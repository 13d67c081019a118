/**
 * What the log says of attempts to link that failed.
 *
 * Roads that are bad pass by themselves and are told as events. A refusal stays
 * until a person does something, so it is a warning, which no `--v` hides: once,
 * and again when the reason is another one or the agent was linked meanwhile.
 *
 * @module
 */

import type { Log } from "../../host/process/log.ts";
import { isDefinite } from "../enrol/enrol_error.ts";

/** See the module description. */
export class AttemptLog {
  readonly #log: Log;
  /** The refusal that was told last. */
  #told: string | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  /** An attempt came to something: the next refusal is news. */
  linked(): void {
    this.#told = undefined;
  }

  /** @param error What the attempt rejected with, if it did. */
  failed(reason: string, retryMs: number, error: unknown): void {
    const line = `${reason}; trying again in ${Math.round(retryMs)} ms`;
    if (!isDefinite(error) || reason === this.#told) {
      return this.#log.event(line);
    }
    this.#told = reason;
    this.#log.warn(line);
  }
}
