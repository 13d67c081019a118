/**
 * Who a TLS peer is, as its certificate says.
 *
 * @module
 */

import type { PeerIdentity } from "../../proto/link/link.ts";

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
  const certificate = socket.getPeerCertificate() as {
    readonly subject?: { readonly CN?: string | readonly string[] };
    readonly subjectaltname?: string;
    readonly fingerprint256?: string;
  } | null;
  const fingerprint = certificate?.fingerprint256;
  if (!fingerprint) return ANONYMOUS;
  const commonName = certificate?.subject?.CN ?? "";
  return {
    kind: "certificate",
    commonName: typeof commonName === "string"
      ? commonName
      : commonName.join(","),
    fingerprint: fingerprint.replaceAll(":", "").toLowerCase(),
    names: splitNames(certificate?.subjectaltname ?? ""),
  };
}

/**
 * Splits `DNS:a, IP Address:::1, URI:"x, y"`. A value with a comma is quoted
 * (else a name could smuggle in a second one), so quoted commas do not split.
 */
function splitNames(text: string): readonly string[] {
  const names = text.match(/(?:"(?:[^"\\]|\\.)*"|[^,"])+/g) ?? [];
  return names.map((entry) => entry.trim()).filter((entry) => entry !== "");
}
