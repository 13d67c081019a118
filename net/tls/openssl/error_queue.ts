/**
 * Errors of OpenSSL, with the codes that `node:tls` gives them.
 *
 * @module
 */

import { SslError } from "../trust/ssl_error.ts";
import type { LibSsl } from "./library.ts";

/** The connection was cut, and the missing bytes may matter (RFC 8446 §6.1). */
export function truncatedError(): SslError {
  return new SslError(
    "ERR_TLS_TRUNCATED",
    "TLS connection was cut off without a goodbye",
  );
}

/**
 * The errors of the last calls, the oldest first: the first is the cause. The
 * queue is empty afterwards.
 */
export function lastSslError(library: LibSsl): SslError {
  const number = library.ERR_get_error();
  library.ERR_clear_error();
  const reason = library.ERR_reason_error_string(number);
  if (reason === null) return new SslError("", "TLS failed without a reason");
  const text = Deno.UnsafePointerView.getCString(reason);
  return new SslError(codeOf(text), wordsOf(text));
}

function wordsOf(reason: string): string {
  const alert = / alert (.+)$/.exec(reason)?.[1];
  return alert === undefined
    ? `TLS failed: ${reason}`
    : ALERTS.get(alert) ?? `the peer ended TLS: ${alert}`;
}

/**
 * A peer's alerts about our certificate. With TLS 1.3 a client receives them
 * when the handshake is over for it, so they end a connection like any other
 * error.
 */
const ALERTS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    "unknown ca":
      "the peer does not trust our certificate: it knows another CA",
    "bad certificate": "the peer refused our certificate",
    "certificate unknown": "the peer refused our certificate",
    "certificate revoked": "the peer refused our certificate",
    "unsupported certificate": "the peer refused our certificate",
    "certificate expired": "the peer says that our certificate has expired",
    "certificate required": "the peer wants a certificate and we showed none",
  }),
);

/** In the form that `node:tls` makes from the library's words. */
function codeOf(reason: string): string {
  // Since 3.2 the library has other names for alerts that are older than TLS.
  const known = reason.replace(/^ssl\/tls alert/, "sslv3 alert");
  return "ERR_SSL_" + known.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_");
}

/**
 * Why a certificate was refused.
 *
 * @param certificate The one, DER.
 */
export function verifyError(
  library: LibSsl,
  outcome: number,
  certificate: Uint8Array<ArrayBuffer>,
): SslError {
  const words = library.X509_verify_cert_error_string(BigInt(outcome));
  const text = words === null
    ? `outcome ${outcome}`
    : Deno.UnsafePointerView.getCString(words);
  return new SslError(
    verifyCode(outcome),
    `TLS failed: certificate verify failed (${text})`,
    certificate,
  );
}

/** Codes and names from `openssl/x509_vfy.h`. */
const VERIFY_CODES: Readonly<Record<number, string>> = {
  2: "UNABLE_TO_GET_ISSUER_CERT",
  7: "CERT_SIGNATURE_FAILURE",
  9: "CERT_NOT_YET_VALID",
  10: "CERT_HAS_EXPIRED",
  18: "DEPTH_ZERO_SELF_SIGNED_CERT",
  19: "SELF_SIGNED_CERT_IN_CHAIN",
  20: "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  // The platform means more by this one than that no authority here signed it.
  21: "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  24: "CERT_UNTRUSTED",
  25: "CERT_UNTRUSTED", // Too long a chain.
  26: "INVALID_PURPOSE",
  27: "CERT_UNTRUSTED",
  28: "CERT_UNTRUSTED", // It is rejected.
  32: "CERT_UNTRUSTED", // Its issuer must not sign any.
  62: "ERR_TLS_CERT_ALTNAME_INVALID", // Its name,
  64: "ERR_TLS_CERT_ALTNAME_INVALID", // its address.
  79: "CERT_UNTRUSTED", // An authority that is none.
};

function verifyCode(outcome: number): string {
  return VERIFY_CODES[outcome] ?? `X509_V_ERR_${outcome}`;
}
