/**
 * What it means to ask for the addresses of a name; who answers is in
 * `system_resolver.ts`.
 *
 * @module
 */

/** What is known of a name. */
export interface FoundAddresses {
  /** IP addresses in order of preference, at least one. */
  readonly addresses: readonly string[];
  /**
   * For how long, from now on, asking again would give the same: what is left
   * of the records' time (TTL), 0 where nothing is kept.
   */
  readonly freshForMs: number;
  /**
   * The last answer, older than its records say, because no newer one could be
   * had (RFC 8767): name servers are silent or fail. Never so when they say that
   * the name is gone.
   */
  readonly isLastAnswer: boolean;
}

/** Asks for the addresses of a name; handed in, so that tests can answer. */
export interface Resolver {
  /**
   * @returns IP addresses in the resolver's order of preference.
   * @throws {LookupError}
   */
  lookup(host: string): Promise<readonly string[]>;
}

/**
 * A resolver that keeps what it was told for as long as the records say, and the
 * last answer for when there is no other. Ask it for each use of a name: it
 * waits for name servers only where it knows nothing yet, or for a moment.
 */
export interface KeepingResolver extends Resolver {
  /** As `lookup`, and how good the answer is. @throws {LookupError} */
  find(host: string): Promise<FoundAddresses>;
}

/**
 * - `unknown`: there is no such name, or it has no addresses.
 * - `timeout`: nobody who would know has answered.
 * - `failed`: whoever was asked could not say.
 */
export type LookupFault = "unknown" | "timeout" | "failed";

/** A name without addresses. The text is Go's, as people and tests know it. */
export class LookupError extends Error {
  override readonly name = "LookupError";

  /** @param detail Why, when it was not simply a name that does not exist. */
  constructor(
    readonly host: string,
    detail = "",
    readonly fault: LookupFault = "unknown",
  ) {
    super(`lookup ${host}: ${sentence(fault, detail)}`);
  }
}

function sentence(fault: LookupFault, detail: string): string {
  if (fault === "timeout") return "i/o timeout";
  if (fault === "failed") return detail;
  return `no such host${detail === "" ? "" : ` (${detail})`}`;
}
