/**
 * Facts of certificates, for decisions about them.
 *
 * @module
 */

import { X509Certificate } from "node:crypto";
import { PkiError, sha256Hex } from "./key_pair.ts";

const BLOCK = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** A certificate is good from an hour before its issue on: clocks differ. */
export const CLOCK_SKEW_MS = 3600_000;

/** The part of its life after which a certificate is renewed. */
export const RENEWAL_FRACTION = 2 / 3;

/** A certificate that was read. */
export interface CertificateFacts {
  /** As the platform reads it. */
  readonly x509: X509Certificate;
  /** PEM, this certificate alone. */
  readonly pem: string;
  /** SHA-256 of the SubjectPublicKeyInfo, hex. */
  readonly publicKeySha256: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/**
 * Reads every certificate of a PEM text; text around them is skipped.
 *
 * @throws {PkiError} When there is none, or one is damaged.
 */
export function readCertificates(pem: string): CertificateFacts[] {
  const blocks = pem.match(BLOCK) ?? [];
  if (blocks.length === 0) {
    throw new PkiError(`it holds no whole PEM block "BEGIN CERTIFICATE"`);
  }
  return blocks.map(certificateFacts);
}

/** The same of one certificate, as PEM or DER. @throws {PkiError} */
export function certificateFacts(
  certificate: string | Uint8Array,
): CertificateFacts {
  try {
    const x509 = new X509Certificate(
      certificate as string | Uint8Array<ArrayBuffer>,
    );
    const spki = x509.publicKey.export({ type: "spki", format: "der" });
    return {
      x509,
      pem: x509.toString().trimEnd() + "\n",
      publicKeySha256: sha256Hex(spki),
      notBeforeMs: Date.parse(x509.validFrom),
      notAfterMs: Date.parse(x509.validTo),
    };
  } catch (cause) {
    throw new PkiError("its certificate is damaged", { cause });
  }
}

/**
 * Whether `issuer` signed `certificate`: by the signature, not only by names,
 * which anyone may write.
 */
export function isSignedBy(
  certificate: X509Certificate,
  issuer: X509Certificate,
): boolean {
  if (!isNamedBy(certificate, issuer)) return false;
  try {
    return certificate.verify(issuer.publicKey);
  } catch {
    return false; // A signature that is none.
  }
}

/** Whether `certificate` names `issuer` as its issuer. */
export function isNamedBy(
  certificate: X509Certificate,
  issuer: X509Certificate,
): boolean {
  try {
    return certificate.issuer === issuer.subject;
  } catch {
    return false; // The platform cannot decode every peer's name.
  }
}

/** How a join token pins an authority: SHA-256 of its key, base64url. */
export function pinOf({ publicKeySha256 }: CertificateFacts): string {
  return Uint8Array.fromHex(publicKeySha256)
    .toBase64({ alphabet: "base64url", omitPadding: true });
}
