/**
 * The contract of a look-up of a name's addresses; the process's resolver is in
 * `system_resolver.ts`.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";

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
   * The last answer, older than its TTL, because there was no newer one (RFC
   * 8767): name servers are silent or fail. Never so when they answer that the
   * name is gone.
   */
  readonly isLastAnswer: boolean;
}

/** Looks up the addresses of a name; handed in, so that tests can answer. */
export interface Resolver {
  /**
   * @returns IP addresses in the resolver's order of preference.
   * @throws {LookupError}
   */
  lookup(host: string): Promise<readonly string[]>;
}

/**
 * A resolver that caches answers for as long as their TTL allows, and the last
 * answer for when there is no other. Call it for each use of a name: it waits
 * for name servers only where it knows nothing yet, or for a moment.
 */
export interface KeepingResolver extends Resolver {
  /** As `lookup`, and how good the answer is. @throws {LookupError} */
  find(host: string): Promise<FoundAddresses>;
}

/**
 * - `unknown`: there is no such name, or it has no addresses.
 * - `timeout`: no server has answered.
 * - `failed`: the servers failed.
 */
export type LookupFault = "unknown" | "timeout" | "failed";

/** A name without addresses. The text is Go's, as people and tests know it. */
export class LookupError extends Error {
  override readonly name = "LookupError";
  readonly tunnelCode: Code = "TUN505";

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
