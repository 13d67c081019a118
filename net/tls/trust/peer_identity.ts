/**
 * The identity of a TLS peer, from its certificate.
 *
 * @module
 */

import { createHash } from "node:crypto";
import {
  ANONYMOUS,
  type PeerIdentity,
} from "../../../proto/peer/peer_identity.ts";
import { setNewest } from "../../../proto/sync/newest.ts";
import { certificateContents } from "../../../platform/pki/certificate_contents.ts";

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
  /** By fingerprint, the most recently seen at the end. */
  readonly #identities = new Map<string, PeerIdentity>();

  constructor(private readonly max: number) {}

  /**
   * @param der A verified certificate; empty: there is none.
   * @returns A new object each time, because some callers use it as a key.
   */
  identityOf(der: Uint8Array<ArrayBuffer>): PeerIdentity {
    if (der.length === 0) return ANONYMOUS;
    const identities = this.#identities;
    const fingerprint = createHash("sha256").update(der).digest("hex");
    const identity = identities.get(fingerprint) ??
      read(der, fingerprint);
    setNewest(identities, fingerprint, identity, this.max);
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
    // With several names, readers choose differently; then no name is proven.
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
