/**
 * Which source counts for a service, where several speak of it; and a line in the
 * log, once, for each that does not.
 *
 * @module
 */

import type { Log } from "../platform/log/log.ts";
import type { SourceInput } from "./source_input.ts";

/** Names of sources. */
export interface Origin {
  /** Who describes the service. */
  readonly service: string;
  /** Whose endpoints it has; absent: nobody's. */
  readonly endpoints?: string;
}

/** Services whose sources were logged; beyond it nothing is logged. */
export const SHADOWED_LOGGED_MAX = 1_000;

export class Origins {
  readonly #inputs: readonly SourceInput[];
  readonly #log: Log;
  /** By service: the sources, as they were logged. */
  readonly #logged = new Map<string, string>();

  constructor(inputs: readonly SourceInput[], log: Log) {
    this.#inputs = inputs;
    this.#log = log;
  }

  /** @returns `undefined`: nobody describes it. */
  of(key: string): Origin | undefined {
    const owner = this.#inputs.find(({ entries }) => entries.services.has(key));
    if (owner === undefined) return undefined;
    const giver = owner.entries.endpoints.has(key)
      ? owner
      : this.#inputs.find(({ entries }) => entries.endpoints.has(key));
    const service = owner.source.name;
    return giver === undefined
      ? { service }
      : { service, endpoints: giver.source.name };
  }

  /** Some services may have other sources than before. */
  touched(keys: Iterable<string>): void {
    // Where there is one source only, nothing can be in its shadow.
    if (this.#inputs.length < 2) return;
    for (const key of keys) this.#tell(key);
  }

  #tell(key: string): void {
    const names = this.#inputs
      .filter(({ entries }) => entries.services.has(key))
      .map(({ source }) => source.name);
    if (names.length < 2) return void this.#logged.delete(key);
    const text = names.join(" and ");
    if (this.#logged.get(key) === text) return;
    if (this.#logged.size >= SHADOWED_LOGGED_MAX && !this.#logged.has(key)) {
      return;
    }
    this.#logged.set(key, text);
    this.#log.event(
      `${key} is described by ${text}: what ${names[0]} says counts`,
    );
  }
}
