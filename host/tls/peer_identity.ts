/**
 * Who a TLS peer is, as its certificate says.
 *
 * @module
 */

import { createHash, X509Certificate } from "node:crypto";
import type { PeerCertificate, PeerIdentity } from "../../proto/link/link.ts";

/** The identity of a peer that showed no certificate. */
export const ANONYMOUS: PeerIdentity = Object.freeze({
  kind: "anonymous",
  commonName: "",
  fingerprint: "",
  names: Object.freeze([]),
});

/** The part of a `node:tls` socket that is read here. */
export interface PeerCertificateHolder {
  readonly authorized: boolean;
  getPeerCertificate(): unknown;
}

/**
 * The identity a TLS socket has proven.
 *
 * Only a certificate that was verified against our CA counts: one that was
 * merely shown proves nothing, so its holder is anonymous.
 */
export function peerIdentityOf(socket: PeerCertificateHolder): PeerIdentity {
  if (!socket.authorized) return ANONYMOUS;
  const certificate = socket.getPeerCertificate() as ShownCertificate | null;
  if (!certificate?.fingerprint256 || certificate.raw === undefined) {
    return ANONYMOUS;
  }
  return {
    kind: "certificate",
    commonName: valuesOf(certificate.subject?.CN).join(","),
    fingerprint: certificate.fingerprint256.replaceAll(":", "").toLowerCase(),
    names: splitNames(certificate.subjectaltname ?? ""),
    certificate: certificateFacts(certificate, certificate.raw),
  };
}

/** Certificates that are remembered by {@linkcode identityOf}. */
const CERTIFICATES_MAX = 256;

/**
 * Identities of the certificates that were seen last: to read one takes a tenth
 * of a handshake, and callers come again with the same.
 */
export class KnownCertificates {
  readonly #max: number;
  /** By fingerprint, the one that was seen last at the end. */
  readonly #identities = new Map<string, PeerIdentity>();

  constructor(max: number) {
    this.#max = max;
  }

  /**
   * @param der Of a certificate that was verified; empty: none was.
   * @returns An object of its own each time, for some keep things by it.
   */
  identityOf(der: Uint8Array<ArrayBuffer>): PeerIdentity {
    if (der.length === 0) return ANONYMOUS;
    const identities = this.#identities;
    const fingerprint = createHash("sha256").update(der).digest("hex");
    const identity = identities.get(fingerprint) ?? read(der);
    identities.delete(fingerprint);
    identities.set(fingerprint, identity);
    if (identities.size > this.#max) {
      const [oldest] = identities.keys();
      identities.delete(oldest!);
    }
    return { ...identity };
  }
}

const known = new KnownCertificates(CERTIFICATES_MAX);

/** See {@linkcode KnownCertificates.identityOf}. */
export function identityOf(der: Uint8Array<ArrayBuffer>): PeerIdentity {
  return known.identityOf(der);
}

function read(der: Uint8Array<ArrayBuffer>): PeerIdentity {
  return peerIdentityOf({
    authorized: true,
    getPeerCertificate: () => new X509Certificate(der).toLegacyObject(),
  });
}

/** What `getPeerCertificate` gives, as far as it is read. */
interface ShownCertificate {
  readonly subject?: {
    readonly CN?: string | readonly string[];
    readonly O?: string | readonly string[];
  };
  readonly subjectaltname?: string;
  readonly fingerprint256?: string;
  readonly serialNumber?: string;
  readonly valid_to?: string;
  readonly raw?: Uint8Array<ArrayBuffer>;
}

function certificateFacts(
  shown: ShownCertificate,
  der: Uint8Array<ArrayBuffer>,
): PeerCertificate {
  let publicKeySha256: string | undefined;
  return {
    organizations: valuesOf(shown.subject?.O),
    // Reads the certificate once more, so only for those who ask.
    get publicKeySha256() {
      return publicKeySha256 ??= createHash("sha256")
        .update(
          new X509Certificate(der).publicKey
            .export({ type: "spki", format: "der" }),
        )
        .digest("hex");
    },
    serialNumber: shown.serialNumber ?? "",
    der,
    notAfterMs: Date.parse(shown.valid_to ?? ""),
  };
}

/** A subject's attribute is absent, a text, or several. */
function valuesOf(
  attribute: string | readonly string[] | undefined,
): readonly string[] {
  if (attribute === undefined) return [];
  return typeof attribute === "string" ? [attribute] : attribute;
}

/**
 * Splits `DNS:a, IP Address:::1, URI:"x, y"`. A value with a comma is quoted
 * (else a name could smuggle in a second one), so quoted commas do not split.
 */
function splitNames(text: string): readonly string[] {
  const names = text.match(/(?:"(?:[^"\\]|\\.)*"|[^,"])+/g) ?? [];
  return names.map((entry) => entry.trim()).filter((entry) => entry !== "");
}
