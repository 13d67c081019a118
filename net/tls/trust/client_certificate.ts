/**
 * Decides about the certificate that a TLS client showed, with the reason.
 *
 * The platform verifies chain, dates and usage, but reports most failures under
 * one code. A person has to know which, so the certificate is read again, for
 * the message only: the platform's decision is never overruled.
 *
 * @module
 */

import { X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import { holderOf } from "../../../platform/pki/certificate_words.ts";
import { certificateRefusal, type TlsHandshakeError } from "./tls_errors.ts";
import type { TlsFailure } from "./tls_errors.ts";

/** What a listener demands of its clients. */
export type ClientCertificateRule =
  /** Handshakes without a good one fail. */
  | "required"
  /**
   * A missing certificate is allowed (the caller authorises by other means), a
   * bad one is not.
   */
  | "optional"
  /** Not even requested. */
  | "none";

/**
 * Checks a socket whose handshake is complete.
 *
 * @param ca The bundle that verifies clients; used only for the text of a
 *   refusal.
 * @returns `undefined` when the client is accepted.
 */
export function refuseClient(
  socket: TLSSocket,
  rule: ClientCertificateRule,
  ca: string,
  remoteAddress: string,
): TlsHandshakeError | undefined {
  if (rule === "none" || socket.authorized) return undefined;
  const der = shownBy(socket);
  if (der === undefined) {
    if (rule === "optional") return undefined;
    return certificateRefusal("no-certificate", remoteAddress, "");
  }
  return certificateRefusal(failureOf(der, ca), remoteAddress, holderOf(der));
}

/** @returns DER; empty: one that the platform cannot read. */
function shownBy(socket: TLSSocket): Uint8Array<ArrayBuffer> | undefined {
  try {
    const shown = socket.getPeerCertificate() as Shown | null;
    return shown?.raw;
  } catch {
    return new Uint8Array(0);
  }
}

/** The fields of `getPeerCertificate` that are read. */
interface Shown {
  readonly raw?: Uint8Array<ArrayBuffer>;
}

function failureOf(der: Uint8Array<ArrayBuffer>, ca: string): TlsFailure {
  try {
    return failureOfReadable(new X509Certificate(der), ca);
  } catch {
    // A name, a date or a key that the platform cannot decode: none of ours.
    return "untrusted-certificate";
  }
}

function failureOfReadable(
  certificate: X509Certificate,
  ca: string,
): TlsFailure {
  if (!isIssuedBy(certificate, ca)) return "untrusted-certificate";
  const now = Date.now();
  if (Date.parse(certificate.validTo) < now) return "expired-certificate";
  if (Date.parse(certificate.validFrom) > now) {
    return "not-yet-valid-certificate";
  }
  // Signed by us and in date, and still refused: its purpose must be wrong.
  return "wrong-usage-certificate";
}

function isIssuedBy(certificate: X509Certificate, ca: string): boolean {
  const blocks = ca.match(/-----BEGIN [^-]+-----[^-]+-----END [^-]+-----/g);
  return (blocks ?? []).some((block) => {
    const issuer = new X509Certificate(block);
    return issuer.subject === certificate.issuer &&
      certificate.verify(issuer.publicKey);
  });
}
