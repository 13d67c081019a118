/**
 * `--tls-min-version` and `--cipher-suites`: what the platform cannot do is the
 * user's to change, so it is refused like any other value.
 *
 * @module
 */

import {
  allowedSuites,
  parseMinVersion,
  TlsOptionError,
} from "../../net/tls/trust/tls_options.ts";
import { isOpensslUsed } from "../../net/tls/tls_in_use.ts";
import type { TlsLimits } from "../../server/options.ts";
import { UsageError } from "../usage_error.ts";

/**
 * Checks both flags.
 *
 * @throws {UsageError} Listing what can be used.
 */
export function tlsLimits(
  minVersionName: string,
  cipherSuites: readonly string[],
  canLimit: () => boolean = isOpensslUsed,
): TlsLimits {
  try {
    const minVersion = parseMinVersion(minVersionName);
    const tls12Suites = allowedSuites(cipherSuites, minVersion, canLimit);
    return {
      minVersion,
      ...(tls12Suites === undefined ? {} : { tls12Suites }),
    };
  } catch (error) {
    if (!(error instanceof TlsOptionError)) throw error;
    throw new UsageError(error.message);
  }
}
