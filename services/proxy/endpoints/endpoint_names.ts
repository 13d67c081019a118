/**
 * Addresses of endpoints that have names.
 *
 * A proxy asks for the same few names at each connection, and a try of a
 * connection has a quarter of a second: so what is known is used for a moment
 * even where its records have no time, and who knows the way does not wait for
 * name servers that are silent. What records say, and what came last, is the
 * resolver's to keep (`net/names/`).
 *
 * @module
 */

import {
  type FoundAddresses,
  type KeepingResolver,
  LookupError,
  type Resolver,
} from "../../../net/names/resolver.ts";
import type { Timers } from "../../../proto/sync/clock.ts";

/** An answer is used for so long at least; for how long at most: `FRESH_MS_MAX`. */
export const FRESH_MS_MIN = 1_000;

/**
 * How long a newer answer is waited for where there is an older one: less than
 * the shortest try of a connection, or the endpoint would be blamed.
 */
export const NEWER_WITHIN_MS = 100;

/** Names that are kept; of whom nobody knows anything more is asked anew. */
export const NAMES_MAX = 16_384;

interface Known {
  addresses: readonly string[];
  freshUntilMs: number;
}

export class EndpointNames implements Resolver {
  readonly #known = new Map<string, Known>();
  readonly #asking = new Map<string, Promise<readonly string[]>>();

  constructor(
    private readonly resolver: KeepingResolver,
    private readonly timers: Timers,
  ) {}

  lookup(host: string): Promise<readonly string[]> {
    const known = this.#known.get(host);
    if (known !== undefined && this.timers.now() < known.freshUntilMs) {
      return Promise.resolve(known.addresses);
    }
    const asking = this.#asking.get(host) ?? this.#ask(host);
    return known === undefined ? asking : this.#orLast(host, asking, known);
  }

  #ask(host: string): Promise<readonly string[]> {
    const asking = this.resolver.find(host)
      .then((found) => this.#keep(host, found))
      .finally(() => this.#asking.delete(host));
    this.#asking.set(host, asking);
    return asking;
  }

  #keep(host: string, found: FoundAddresses): readonly string[] {
    const { addresses, freshForMs } = found;
    const freshMs = Math.max(freshForMs, FRESH_MS_MIN);
    const freshUntilMs = this.timers.now() + freshMs;
    this.#known.delete(host);
    this.#known.set(host, { addresses, freshUntilMs });
    if (this.#known.size > NAMES_MAX) {
      const [oldest] = this.#known.keys();
      this.#known.delete(oldest!);
    }
    return addresses;
  }

  /** What comes of asking, or what is known when that takes too long. */
  #orLast(
    host: string,
    asking: Promise<readonly string[]>,
    known: Known,
  ): Promise<readonly string[]> {
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        // Those who come meanwhile need not wait as well.
        known.freshUntilMs = this.timers.now() + FRESH_MS_MIN;
        resolve(known.addresses);
      };
      const timer = this.timers.after(NEWER_WITHIN_MS, giveUp);
      asking.then((addresses) => {
        timer.cancel();
        resolve(addresses);
      }, (error) => {
        timer.cancel();
        if (!isGone(error)) return giveUp();
        this.#known.delete(host);
        reject(error);
      });
    });
  }
}

/** Who should know says that there is no such name any more. */
function isGone(error: unknown): boolean {
  return error instanceof LookupError && error.fault === "unknown";
}
