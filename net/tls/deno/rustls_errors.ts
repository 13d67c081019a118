/**
 * What `Deno.connectTls` says of a failed handshake, as the codes by which
 * `tls_errors.ts` and `node:tls` know the same failures.
 *
 * The platform hands on rustls's sentences and no codes, so they are told by
 * their words. A sentence that is not here is shown as it is.
 *
 * @module
 */

/** What rustls or the resolver says, and the code that others give it. */
const CODES: readonly (readonly [RegExp, string])[] = [
  [/certificate not valid for name/, "ERR_TLS_CERT_ALTNAME_INVALID"],
  [/certificate expired|CertExpired/, "CERT_HAS_EXPIRED"],
  [/not valid yet|NotValidYet/, "CERT_NOT_YET_VALID"],
  [/purpose|InvalidPurpose|extended key usage/i, "INVALID_PURPOSE"],
  [/UnknownIssuer|BadSignature|CaUsedAsEndEntity/, "CERT_UNTRUSTED"],
  [/CertificateRequired/, "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED"],
  [
    /NoApplicationProtocol/,
    "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL",
  ],
  [/alert: UnknownCA/, "ERR_SSL_TLSV1_ALERT_UNKNOWN_CA"],
  [/alert: BadCertificate/, "ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE"],
  [/alert: CertificateExpired/, "ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED"],
  [/alert: CertificateRevoked/, "ERR_SSL_SSLV3_ALERT_CERTIFICATE_REVOKED"],
  [/alert: CertificateUnknown/, "ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN"],
  [
    /alert: UnsupportedCertificate/,
    "ERR_SSL_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE",
  ],
  [/alert: ProtocolVersion/, "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION"],
  [/alert: HandshakeFailure/, "ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE"],
  [/InvalidContentType|corrupt message/, "ERR_SSL_WRONG_VERSION_NUMBER"],
  [/close_notify|eof/i, "ECONNRESET"],
  [/failed to lookup address/, "ENOTFOUND"],
];

/** The error with a `code`, unless it has one or its words are unknown. */
export function withCode(error: unknown): unknown {
  if (!(error instanceof Error) || "code" in error) return error;
  const row = CODES.find(([words]) => words.test(error.message));
  return row === undefined ? error : Object.assign(error, { code: row[1] });
}
