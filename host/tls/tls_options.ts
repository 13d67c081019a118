/**
 * TLS versions and cipher suites: Go's names, and what this platform has.
 *
 * The platform (rustls) speaks TLS 1.2 and 1.3 with nine suites and cannot be
 * limited to some of them: it takes a list and ignores it. A flag that is
 * accepted must work, so a list that would have to limit it is refused.
 *
 * @module
 */

import type { SecureVersion } from "node:tls";

/** Values of `--tls-min-version` that work here. */
const VERSIONS: ReadonlyMap<string, SecureVersion> = new Map<
  string,
  SecureVersion
>(Object.entries({
  VersionTLS12: "TLSv1.2",
  VersionTLS13: "TLSv1.3",
}));

/** Versions that Go knows and the platform lacks. */
const OLD_VERSIONS: ReadonlySet<string> = new Set([
  "VersionTLS10",
  "VersionTLS11",
]);

/** The suites of TLS 1.2 that the platform negotiates (IANA names, as in Go). */
export const TLS12_SUITES: readonly string[] = [
  "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
  "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
  "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
  "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
  "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
  "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];

/** Suites of TLS 1.3, which a list never limits (nor does it in Go). */
export const TLS13_SUITES: readonly string[] = [
  "TLS_AES_256_GCM_SHA384",
  "TLS_AES_128_GCM_SHA256",
  "TLS_CHACHA20_POLY1305_SHA256",
];

/** Older spellings that Go accepts too. */
const ALIASES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305:
      "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305:
      "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
  }),
);

/** A version or suite that cannot be had. */
export class TlsOptionError extends Error {
  override readonly name = "TlsOptionError";
}

/**
 * Reads a minimum version such as `VersionTLS12`; empty means that one.
 *
 * @throws {TlsOptionError} Listing the usable ones.
 */
export function parseMinVersion(name: string): SecureVersion {
  const version = VERSIONS.get(name === "" ? "VersionTLS12" : name);
  if (version !== undefined) return version;
  const seen = OLD_VERSIONS.has(name)
    ? `${name} is not offered by this platform`
    : `"${name}" is no TLS version`;
  throw new TlsOptionError(
    `Cannot use that TLS version: ${seen}; usable are ` +
      [...VERSIONS.keys()].join(", "),
  );
}

/**
 * Checks a list of cipher suites. Empty means all of the platform's.
 *
 * @throws {TlsOptionError} Listing the usable ones, when a suite is unknown or
 *   missing here, or when the list leaves out one that would be used anyway.
 */
export function checkCipherSuites(
  names: readonly string[],
  minVersion: SecureVersion,
): void {
  if (names.length === 0) return;
  const wanted = new Set(names.map((name) => ALIASES.get(name) ?? name));
  const lacking = [...wanted].filter((name) =>
    !TLS12_SUITES.includes(name) && !TLS13_SUITES.includes(name)
  );
  if (lacking.length > 0) {
    throw new TlsOptionError(
      `Cannot use the cipher suites ${lacking.join(", ")}: this platform ` +
        `does not have them; usable are ` +
        [...TLS12_SUITES, ...TLS13_SUITES].join(", "),
    );
  }
  // From TLS 1.3 on the list means nothing, here and in Go.
  if (minVersion === "TLSv1.3") return;
  const leftOut = TLS12_SUITES.filter((name) => !wanted.has(name));
  if (leftOut.length === 0) return;
  throw new TlsOptionError(
    `Cannot limit TLS 1.2 to the cipher suites given: this platform would ` +
      `still use ${leftOut.join(", ")}; name these as well, give no list, or ` +
      `ask for VersionTLS13`,
  );
}
