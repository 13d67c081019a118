/**
 * TLS versions and cipher suites: Go's names, and what this platform has.
 *
 * OpenSSL can be limited to some suites. The platform (rustls) cannot: it takes a
 * list and ignores it. A flag that is accepted must work, so a list that would
 * have to limit it is refused.
 *
 * @module
 */

import type { Code } from "../../../proto/codes/codes.ts";
import type { SecureVersion } from "node:tls";

/** Values of `--tls-min-version` that work here. */
const VERSIONS: ReadonlyMap<string, SecureVersion> = new Map<
  string,
  SecureVersion
>(Object.entries({
  VersionTLS12: "TLSv1.2",
  VersionTLS13: "TLSv1.3",
}));

/** The suites of TLS 1.2 that the platform negotiates (IANA names, as in Go). */
export const TLS12_SUITES: readonly string[] = [
  "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
  "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
  "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
  "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
  "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
  "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];

/** The same, as OpenSSL calls them. */
const OPENSSL_NAMES: ReadonlyMap<string, string> = new Map(
  TLS12_SUITES.map((name) => [
    name,
    name.replace(/^TLS_|WITH_/g, "").replace("_POLY1305_SHA256", "_POLY1305")
      .replace(/AES_(\d+)/, "AES$1").replaceAll("_", "-"),
  ]),
);

/** Suites of TLS 1.3, which a list never limits (as in Go). */
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

/**
 * Suites that Go knows and that are never offered here: no forward secrecy, or
 * CBC, which was attacked again and again. Lists of hardening guides name them.
 */
const GO_ONLY_SUITE =
  /^TLS_(?:RSA|ECDHE_(?:RSA|ECDSA))_WITH_(?:RC4_128|3DES_EDE_CBC|AES_(?:128|256)_(?:CBC|GCM))_SHA(?:256|384)?$/;

/** A version or suite that is not available. */
export class TlsOptionError extends Error {
  override readonly name = "TlsOptionError";
  readonly tunnelCode: Code = "TUN101";
}

/**
 * Reads a minimum version such as `VersionTLS12`; empty means that one.
 *
 * @throws {TlsOptionError} Listing the usable ones.
 */
export function parseMinVersion(name: string): SecureVersion {
  const version = VERSIONS.get(name === "" ? "VersionTLS12" : name);
  if (version !== undefined) return version;
  throw new TlsOptionError(
    `Cannot use that TLS version: "${name}" is none that is offered here; ` +
      `usable are ${[...VERSIONS.keys()].join(", ")}`,
  );
}

/**
 * The suites of TLS 1.2 that a list of Go's names allows.
 *
 * Names of suites that this program does not offer are ignored, as long as one
 * suite remains. Suites of TLS 1.3 in the list have no effect, here and in Go.
 *
 * @param canLimit Whether the TLS in use follows a list.
 * @returns `undefined`: all, so nothing has to be limited.
 * @throws {TlsOptionError} When Go knows no such suite, none remains, or one
 *   that the list leaves out would be used anyway.
 */
export function allowedSuites(
  names: readonly string[],
  minVersion: SecureVersion,
  canLimit: () => boolean,
): readonly string[] | undefined {
  if (names.length === 0) return undefined;
  const wanted = new Set(names.map((name) => ALIASES.get(name) ?? name));
  const usable = [...TLS12_SUITES, ...TLS13_SUITES];
  const unknown = [...wanted].filter((name) =>
    !usable.includes(name) && !GO_ONLY_SUITE.test(name)
  );
  if (unknown.length > 0) {
    throw new TlsOptionError(
      `Cannot use the cipher suites ${unknown.join(", ")}: there are none of ` +
        `that name; usable are ${usable.join(", ")}`,
    );
  }
  if (minVersion === "TLSv1.3") return undefined;
  const allowed = TLS12_SUITES.filter((name) => wanted.has(name));
  if (allowed.length === 0) {
    throw new TlsOptionError(
      "Cannot limit TLS 1.2 to the cipher suites given: none of them has both " +
        `forward secrecy and AEAD; name some of ${TLS12_SUITES.join(", ")}, ` +
        "or ask for VersionTLS13",
    );
  }
  const leftOut = TLS12_SUITES.filter((name) => !wanted.has(name));
  if (leftOut.length === 0) return undefined;
  if (canLimit()) return allowed;
  throw new TlsOptionError(
    "Cannot limit TLS 1.2 to the cipher suites given: without OpenSSL 3 this " +
      `program would still use ${leftOut.join(", ")}; install it, name these ` +
      "as well, give no list, or ask for VersionTLS13",
  );
}

/** For `SSL_CTX_set_cipher_list`. @param names Of {@linkcode TLS12_SUITES}. */
export function opensslCipherList(names: readonly string[]): string {
  return names.map((name) => OPENSSL_NAMES.get(name)!).join(":");
}
