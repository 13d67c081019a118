/**
 * The identity of a peer, as its certificate proved. How that is proven is for
 * TLS.
 *
 * @module
 */

/** The other end, as proven by its certificate. */
export interface PeerIdentity {
  /** `anonymous` when no certificate was shown. */
  readonly kind: "certificate" | "anonymous";
  /** Subject common name; empty when anonymous. */
  readonly commonName: string;
  /** SHA-256 of the certificate in hex; empty when anonymous. */
  readonly fingerprint: string;
  /** Subject alternative names, such as `DNS:node1`. */
  readonly names: readonly string[];
  /** More of the certificate, for the code that decides what it is good for. */
  readonly certificate?: PeerCertificate;
}

/** A certificate whose holder was verified. */
export interface PeerCertificate {
  /** Subject organizations (O); Kubernetes calls them groups. */
  readonly organizations: readonly string[];
  /** SHA-256 of the SubjectPublicKeyInfo in hex: the same as long as the key is. */
  readonly publicKeySha256: string;
  /** In hex, as the platform writes it. */
  readonly serialNumber: string;
  /** DER. */
  readonly der: Uint8Array;
  /** When it ends, milliseconds since 1970. */
  readonly notAfterMs: number;
}

/** The identity of a peer that showed no certificate. */
export const ANONYMOUS: PeerIdentity = Object.freeze({
  kind: "anonymous",
  commonName: "",
  fingerprint: "",
  names: Object.freeze([]),
});
