/**
 * A mistake of the user, as one line: what was seen, what was wanted, and what to
 * do. Ends the process with `ExitCode.USAGE`.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";

/** See the module description. */
export class UsageError extends Error {
  override readonly name = "UsageError";

  constructor(message: string, readonly tunnelCode: Code = "TUN101") {
    super(message);
  }
}

/**
 * Joins two flags.
 *
 * @returns `undefined` when neither was given.
 * @throws {UsageError} When only one was.
 */
export function keyPair(
  certFlag: string,
  certFile: string,
  keyFlag: string,
  keyFile: string,
): { readonly certFile: string; readonly keyFile: string } | undefined {
  if (certFile === "" && keyFile === "") return undefined;
  if (certFile !== "" && keyFile !== "") return { certFile, keyFile };
  const [seen, lacking] = certFile !== ""
    ? [certFlag, keyFlag]
    : [keyFlag, certFlag];
  throw new UsageError(
    `Cannot use --${seen} alone: --${lacking} belongs to it; give both`,
    "TUN101",
  );
}
