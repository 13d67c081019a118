/**
 * The identity of a peer: what its certificate proved (TLS checks that), and
 * what it says about itself, an instance and a version.
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
  /** More fields of the certificate, for code that decides about its rights. */
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

/**
 * The holder of a certificate that this process does not see: it has no key, so no
 * decision may depend on one.
 */
export function reportedIdentity(
  {
    commonName,
    fingerprint = "",
    names = [],
    organizations = [],
    notAfterMs = NaN,
  }: {
    readonly commonName: string;
    readonly fingerprint?: string;
    readonly names?: readonly string[];
    readonly organizations?: readonly string[];
    readonly notAfterMs?: number;
  },
): PeerIdentity {
  const unseen = {
    publicKeySha256: "",
    serialNumber: "",
    der: new Uint8Array(0),
  };
  const certificate = { organizations, notAfterMs, ...unseen };
  return { kind: "certificate", commonName, fingerprint, names, certificate };
}

// Separates the processes that speak for one node: each agent makes an instance
// id when it starts, and sends it on all of its links.
//
// It proves nothing: a process with a node's key can send any id. But it does
// not know the id of a process that runs elsewhere, so a second process with
// the same key cannot pass for the first one.

/** The metadata field of the packets carrier; Go peers ignore it. */
export const INSTANCE_FIELD = "tunnel-instance";

/** Bytes of randomness in an id: it cannot be guessed, and no two are alike. */
const INSTANCE_ID_BYTES = 16;

/** Longer ones are no ids: they are kept for each link, and shown. */
const INSTANCE_ID = /^[0-9A-Za-z_-]{8,64}$/;

/** An id for a process that starts. */
export function newInstanceId(
  randomness: (bytes: Uint8Array<ArrayBuffer>) => void,
): string {
  const bytes = new Uint8Array(INSTANCE_ID_BYTES);
  randomness(bytes);
  return bytes.toHex();
}

/**
 * The id that a peer sent; `undefined` when it sent none, or an invalid one.
 */
export function readInstanceId(text: string | undefined): string | undefined {
  return text !== undefined && INSTANCE_ID.test(text) ? text : undefined;
}

// Which of two programs of ours is older, by the versions that they state.

/** Such as `0.1.0` of `tunnel/0.1.0`; `undefined`: it is none of ours. */
export function versionIn(software: string): string | undefined {
  return /^tunnel\/(\d{1,9}\.\d{1,9}\.\d{1,9})/.exec(software)?.[1];
}

/**
 * Negative: `one` is older than `other`. Pre-releases count as their release.
 *
 * @param one Major, minor and patch, with a point between them.
 */
export function compareVersions(one: string, other: string): number {
  const others = partsOf(other);
  for (const [index, part] of partsOf(one).entries()) {
    const difference = part - (others[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function partsOf(version: string): readonly number[] {
  return version.split(".", 3).map((part) => parseInt(part) || 0);
}
