/**
 * What went wrong in a TLS handshake, in one sentence a person can act on.
 *
 * The platform's codes (rustls behind OpenSSL's names) name what the machine
 * saw; a person wants to know which side has to change what. Both ends' tables
 * are here, so that the two sentences about one failure can be compared.
 *
 * @module
 */

import { TUNNEL_SERVER_NAME } from "../../../proto/identity/node_name.ts";
import type { Code } from "../../../proto/codes/codes.ts";
import { SslError } from "./ssl_error.ts";
import { codeOf, messageOf } from "../../../platform/errors/error_code.ts";
import { clocksOf } from "../../../platform/pki/certificate_words.ts";

/** Why a handshake failed; also the label of its metric. */
export type TlsFailure =
  | "no-certificate"
  | "untrusted-certificate"
  | "expired-certificate"
  | "not-yet-valid-certificate"
  | "wrong-usage-certificate"
  | "wrong-name"
  | "no-common-alpn"
  | "no-common-version"
  | "not-tls"
  | "refused-by-peer"
  | "timeout"
  | "closed"
  | "other";

/** A handshake that failed. `message` is the whole sentence. */
export class TlsHandshakeError extends Error {
  override readonly name = "TlsHandshakeError";

  get tunnelCode(): Code {
    return FAILURE_CODES[this.failure];
  }

  constructor(
    readonly failure: TlsFailure,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

const FAILURE_CODES: Readonly<Record<TlsFailure, Code>> = {
  "no-certificate": "TUN206",
  "untrusted-certificate": "TUN205",
  "expired-certificate": "TUN201",
  "not-yet-valid-certificate": "TUN201",
  "wrong-usage-certificate": "TUN203",
  "wrong-name": "TUN207",
  "no-common-alpn": "TUN208",
  "no-common-version": "TUN208",
  "not-tls": "TUN208",
  "refused-by-peer": "TUN206",
  timeout: "TUN208",
  closed: "TUN208",
  other: "TUN208",
};

type Row = readonly [failure: TlsFailure, server: string, client: string];

/**
 * For clients with a CA option; a node that joined trusts the CA that it
 * joined.
 */
export const GIVE_CA = "give the CA of the server";

const UNTRUSTED: Row = [
  "untrusted-certificate",
  "its certificate was not signed by a CA that is trusted here",
  "the server's certificate was not signed by a CA that is trusted here; " +
  GIVE_CA,
];
const EXPIRED: Row = [
  "expired-certificate",
  "its certificate has expired",
  "the server's certificate has expired",
];
const REFUSED_CA: Row = [
  "refused-by-peer",
  "it does not trust our certificate: it knows another CA",
  "the server does not trust our certificate: it knows another CA",
];
const REFUSED: Row = [
  "refused-by-peer",
  "it refused our certificate",
  "the server refused our certificate",
];
const NO_ALPN: Row = [
  "no-common-alpn",
  "it offers no application protocol (ALPN) that is served here",
  "the server speaks none of the application protocols (ALPN) offered",
];
const NO_VERSION: Row = [
  "no-common-version",
  "it has no TLS version or cipher suite in common with us",
  "the server has no TLS version or cipher suite in common with us",
];
const NOT_TLS: Row = [
  "not-tls",
  "it does not speak TLS (plain HTTP, or not HTTP at all)",
  "the server does not speak TLS on this port; give the port on which it does " +
  "(agents: --agent-port, 8091 unless said)",
];
const CLOSED: Row = [
  "closed",
  "it closed the connection during the handshake",
  "the server closed the connection during the handshake; " +
  "is this a TLS port, and does it accept our certificate?",
];

/** By the peer's clock; by ours we would not have shown it. */
const OURS_EXPIRED = "ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED";

/** By the platform's error code. */
const ROWS: Readonly<Record<string, Row>> = {
  ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE: [
    "no-certificate",
    "it showed no client certificate, and one is required here",
    "the server showed no certificate",
  ],
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: [
    "no-certificate",
    "it requires a certificate and we showed none",
    "the server requires a client certificate and none was given",
  ],
  ERR_SSL_WRONG_VERSION_NUMBER: NOT_TLS,
  ERR_SSL_HTTP_REQUEST: NOT_TLS,
  ERR_SSL_HTTPS_PROXY_REQUEST: NOT_TLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: NOT_TLS,
  ERR_SSL_BAD_RECORD_TYPE: NOT_TLS,
  // The platform's code for nearly everything, so the client's sentence says
  // more. (The server looks at the certificate itself; see
  // `client_certificate.ts`.)
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: [
    "untrusted-certificate",
    UNTRUSTED[1],
    "the server's certificate was not signed by a CA that is trusted here, " +
    "has expired, or is not for servers",
  ],
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  CERT_SIGNATURE_FAILURE: UNTRUSTED,
  CERT_UNTRUSTED: UNTRUSTED,
  CERT_HAS_EXPIRED: EXPIRED,
  CERT_NOT_YET_VALID: [
    "not-yet-valid-certificate",
    "its certificate is not valid yet",
    "the server's certificate is not valid yet",
  ],
  INVALID_PURPOSE: [
    "wrong-usage-certificate",
    "its certificate is not for clients (extended key usage)",
    "the server's certificate is not for servers (extended key usage)",
  ],
  ERR_TLS_CERT_ALTNAME_INVALID: [
    "wrong-name",
    "its certificate is for another name",
    "the server's certificate is for another name",
  ],
  ERR_SSL_NO_APPLICATION_PROTOCOL: NO_ALPN,
  ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: NO_ALPN,
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: NO_VERSION,
  ERR_SSL_TLSV1_ALERT_INSUFFICIENT_SECURITY: NO_VERSION,
  ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE: NO_VERSION,
  ERR_SSL_UNSUPPORTED_PROTOCOL: NO_VERSION,
  ERR_SSL_VERSION_TOO_LOW: NO_VERSION,
  ERR_SSL_NO_SUITABLE_SIGNATURE_ALGORITHM: NO_VERSION,
  ERR_SSL_NO_SHARED_CIPHER: NO_VERSION,
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: REFUSED_CA,
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: REFUSED,
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN: REFUSED,
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_REVOKED: REFUSED,
  ERR_SSL_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE: REFUSED,
  [OURS_EXPIRED]: [
    "refused-by-peer",
    "it says that our certificate has expired",
    "the server says that our certificate has expired",
  ],
  ECONNRESET: CLOSED,
  ERR_TLS_TRUNCATED: CLOSED,
  EPIPE: CLOSED,
};

/** Sentences for faults that our own look at a certificate finds. */
const CERTIFICATE_ROWS: Readonly<Partial<Record<TlsFailure, Row>>> = {
  "no-certificate": ROWS.ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE!,
  "untrusted-certificate": UNTRUSTED,
  "expired-certificate": EXPIRED,
  "not-yet-valid-certificate": ROWS.CERT_NOT_YET_VALID!,
  "wrong-usage-certificate": ROWS.INVALID_PURPOSE!,
};

/**
 * Describes what a TLS server saw of a client.
 *
 * @param holder Whose certificate it showed, where that is known.
 */
export function serverHandshakeError(
  error: unknown,
  remoteAddress: string,
  holder = "",
): TlsHandshakeError {
  const [failure, sentence] = lookUp(error);
  return new TlsHandshakeError(
    failure,
    `Cannot accept TLS from ${remoteAddress}: ${sentence ?? messageOf(error)}` +
      clockNote(failure) + (holder === "" ? "" : ` (${holder})`),
    { cause: error },
  );
}

/** Describes what a TLS client saw of a server. */
export function clientHandshakeError(
  error: unknown,
  serverAddress: string,
): TlsHandshakeError {
  const [failure, , sentence] = lookUp(error);
  const detail = failure === "wrong-name"
    ? ` (${messageOf(error)}); ${nameHint(messageOf(error))}`
    : codeOf(error) === OURS_EXPIRED
    ? clockNote("expired-certificate")
    : clockNote(failure, certificateOf(error));
  return new TlsHandshakeError(
    failure,
    `Cannot connect to ${serverAddress} with TLS: ` +
      (sentence ?? messageOf(error)) + detail,
    { cause: error },
  );
}

/** @param text Which name was asked for, and which the certificate has. */
function nameHint(text: string): string {
  return text.endsWith(`DNS:${TUNNEL_SERVER_NAME}`)
    ? "that is a tunnel server's port for joined nodes, callers use its frontend"
    : "reach it by a name that it has";
}

/** Describes a client whose certificate was looked at and refused. */
export function certificateRefusal(
  failure: TlsFailure,
  remoteAddress: string,
  holder: string,
): TlsHandshakeError {
  const sentence = CERTIFICATE_ROWS[failure]?.[1] ?? "it was refused";
  return new TlsHandshakeError(
    failure,
    `Cannot accept TLS from ${remoteAddress}: ${sentence}` +
      clockNote(failure) + (holder === "" ? "" : ` (${holder})`),
  );
}

/** Dates are compared with a clock, and clocks are wrong more often than dates. */
const ABOUT_CLOCKS: ReadonlySet<string> = new Set<TlsFailure>([
  "expired-certificate",
  "not-yet-valid-certificate",
]);

function clockNote(
  failure: TlsFailure,
  certificate?: Uint8Array<ArrayBuffer>,
): string {
  if (!ABOUT_CLOCKS.has(failure)) return "";
  return `: ${clocksOf(certificate, Date.now())}; compare the clocks`;
}

/** The one that was refused, where the library reports it. */
function certificateOf(error: unknown): Uint8Array<ArrayBuffer> | undefined {
  return error instanceof SslError ? error.certificate : undefined;
}

function lookUp(error: unknown): Row | readonly ["timeout" | "other"] {
  const code = codeOf(error);
  const row = Object.hasOwn(ROWS, code) ? ROWS[code] : undefined;
  if (row !== undefined) return row;
  if (!/handshake timeout/i.test(messageOf(error))) return ["other"];
  return TIMEOUT;
}

const TIMEOUT: Row = [
  "timeout",
  "it did not finish the handshake in time",
  "the server did not finish the handshake in time",
];
