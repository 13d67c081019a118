/**
 * A certificate and its key go together.
 *
 * @module
 */

import { UsageError } from "./usage_error.ts";

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
