/**
 * A certificate authority that lives as long as the process, and makes keys
 * along with certificates, which are never stored. What people rely on is `platform/pki`.
 *
 * @module
 */

import {
  CertificateAuthority,
  type LeafName,
} from "../../../platform/pki/authority.ts";
import {
  exportPrivateKey,
  generateKeyPair,
} from "../../../platform/pki/key_pair.ts";

const DAY_MS = 24 * 3600 * 1000;

/** A certificate and its key, both PEM. */
export interface CertificatePair {
  readonly cert: string;
  /** PKCS #8. */
  readonly key: string;
}

/** What a certificate is to say. */
export interface CertificateSpec {
  readonly commonName: string;
  readonly organizations?: readonly string[];
  /** Whether the holder answers (server), calls (client), or both. */
  readonly usage: "server" | "client" | "both";
  /** DNS names and IP addresses. */
  readonly names?: readonly string[];
  /** Default: an hour ago, so that clocks may differ. */
  readonly notBefore?: Date;
  /** Default: in a day. */
  readonly notAfter?: Date;
}

/** See the module description. */
export class ThrowawayCa {
  private constructor(private readonly authority: CertificateAuthority) {}

  /** Makes a new authority with a key of its own. */
  static async create(commonName = "throw-away CA"): Promise<ThrowawayCa> {
    return new ThrowawayCa(
      await CertificateAuthority.create({
        commonName: () => commonName,
        notAfter: new Date(Date.now() + DAY_MS),
      }),
    );
  }

  /** The authority's own certificate, PEM. */
  get cert(): string {
    return this.authority.certificate;
  }

  /** The authority's own key, PEM. */
  async exportKey(): Promise<string> {
    return (await this.authority.export()).slice(this.cert.length);
  }

  /** Makes a key and signs it. */
  async issue(spec: CertificateSpec): Promise<CertificatePair> {
    const { publicKey, privateKey } = await generateKeyPair();
    const cert = await this.authority.issue({
      notAfter: new Date(Date.now() + DAY_MS),
      ...spec,
      publicKey,
      names: (spec.names ?? []).map(leafName),
    });
    return { cert, key: await exportPrivateKey(privateKey) };
  }
}

function leafName(value: string): LeafName {
  const isIp = /^[0-9.]+$/.test(value) || value.includes(":");
  return { type: isIp ? "ip" : "dns", value };
}
