/**
 * `--tls-min-version` and `--cipher-suites`: Go's names, as far as the platform
 * has what they stand for.
 *
 * @module
 */

import type { TlsLimits } from "../../server/options.ts";
import { UsageError } from "../usage_error.ts";

const VERSIONS = ["VersionTLS12", "VersionTLS13"] as const;

/** Go's names for what rustls, which is under Deno, implements. */
const CIPHER_SUITES: readonly string[] = [
  "TLS_AES_128_GCM_SHA256",
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
  "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
  "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
  "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
  "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
  "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
  "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];

/**
 * Checks both flags.
 *
 * @throws {UsageError} Listing what can be used.
 */
export function tlsLimits(
  minVersion: string,
  cipherSuites: readonly string[],
): TlsLimits {
  const version = VERSIONS.find((name) => name === minVersion);
  if (version === undefined && minVersion !== "") {
    throw new UsageError(
      `Cannot use --tls-min-version: saw "${minVersion}", which this ` +
        `platform does not have; wanted ${VERSIONS.join(" or ")}`,
    );
  }
  const unusable = cipherSuites.find((name) => !CIPHER_SUITES.includes(name));
  if (unusable !== undefined) {
    throw new UsageError(
      `Cannot use --cipher-suites: saw "${unusable}", which this platform ` +
        `does not have; usable: ${CIPHER_SUITES.join(", ")}`,
    );
  }
  return { minVersion: version ?? "VersionTLS12", cipherSuites };
}
