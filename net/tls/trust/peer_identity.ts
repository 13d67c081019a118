/**
 * The identity of a TLS peer, from its certificate.
 *
 * @module
 */

import {
  certificateRefusal,
  type TlsFailure,
  type TlsHandshakeError,
} from "./tls_errors.ts";
import { createHash, X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import { certificateContents } from "../../../platform/pki/certificate_contents.ts";
import { holderOf } from "../../../platform/pki/certificate_words.ts";
import {
  ANONYMOUS,
  type PeerIdentity,
} from "../../../proto/peer/peer_identity.ts";

/** The part of a `node:tls` socket that is read here. */
export interface PeerCertificateHolder {
  readonly authorized: boolean;
  getPeerX509Certificate(): { readonly raw: Uint8Array } | undefined;
}

/**
 * The identity a TLS socket has proven.
 *
 * Only a certificate that was verified against our CA counts: one that was
 * merely shown proves nothing, so its holder is anonymous.
 */
export function peerIdentityOf(socket: PeerCertificateHolder): PeerIdentity {
  if (!socket.authorized) return ANONYMOUS;
  const shown = socket.getPeerX509Certificate();
  return shown === undefined
    ? ANONYMOUS
    : identityOf(new Uint8Array(shown.raw));
}

/** Certificates that are remembered by {@linkcode identityOf}. */
const CERTIFICATES_MAX = 256;

/**
 * Identities of the certificates that were seen last: to read one takes a tenth
 * of a handshake, and callers use the same one again.
 */
export class KnownCertificates {
  /** By fingerprint, the one that was seen last at the end. */
  readonly #identities = new Map<string, PeerIdentity>();

  constructor(private readonly max: number) {}

  /**
   * @param der Of a certificate that was verified; empty: none was.
   * @returns An object of its own each time, for some keep things by it.
   */
  identityOf(der: Uint8Array<ArrayBuffer>): PeerIdentity {
    if (der.length === 0) return ANONYMOUS;
    const identities = this.#identities;
    const fingerprint = createHash("sha256").update(der).digest("hex");
    const identity = identities.get(fingerprint) ??
      read(der, fingerprint);
    identities.delete(fingerprint);
    identities.set(fingerprint, identity);
    if (identities.size > this.max) {
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

function read(der: Uint8Array, fingerprint: string): PeerIdentity {
  const contents = certificateContents(der);
  const { commonNames, names, serialNumber, notAfterMs } = contents;
  return {
    kind: "certificate",
    // Of several, readers choose differently; then none is proven.
    commonName: commonNames.length === 1 ? commonNames[0] ?? "" : "",
    fingerprint,
    names,
    certificate: {
      organizations: contents.organizations,
      publicKeySha256: createHash("sha256").update(contents.publicKeyInfo)
        .digest("hex"),
      serialNumber,
      der,
      notAfterMs,
    },
  };
}

/** What a listener demands of its clients. */
export type ClientCertificateRule =
  /** Handshakes without a good one fail. */
  | "required"
  /** None is fine (the caller authorises otherwise), a bad one is not. */
  | "optional"
  /** Not even requested. */
  | "none";

/**
 * Checks a socket whose handshake is complete.
 *
 * @param ca The bundle clients are verified against, for the words only.
 * @returns `undefined` when the client may stay.
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

/** What `getPeerCertificate` gives, as far as it is read. */
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
  // Signed by us and in date, and still refused: what is left is its purpose.
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
