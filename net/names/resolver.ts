/**
 * The contract of a look-up of a name's addresses; the process's resolver is in
 * `system_resolver.ts`.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";

/** Looks up the addresses of a name; handed in, so that tests can answer. */
export interface Resolver {
  /**
   * @returns IP addresses in the resolver's order of preference, at least one.
   * @throws {LookupError}
   */
  lookup(host: string): Promise<readonly string[]>;
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
