/**
 * A certificate authority that lives as long as the process.
 *
 * For demonstrations and tests: its key is never stored, and everything it
 * signs is P-256 with TLS names (RFC 5280). A CA that people rely on needs more
 * than this (a kept key, revocation, renewal).
 *
 * @module
 */

import "reflect-metadata";
import * as x509 from "@peculiar/x509";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const DAY_MS = 24 * 3600 * 1000;

/** A certificate and its key, both PEM. */
export interface CertificatePair {
  readonly cert: string;
  /** PKCS #8. */
  readonly key: string;
}

/** What a certificate is to say. */
export interface CertificateWish {
  readonly commonName: string;
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
  readonly #keys: CryptoKeyPair;
  readonly #certificate: x509.X509Certificate;

  private constructor(keys: CryptoKeyPair, own: x509.X509Certificate) {
    this.#keys = keys;
    this.#certificate = own;
  }

  /** Makes a new authority with a key of its own. */
  static async create(commonName = "throw-away CA"): Promise<ThrowawayCa> {
    const keys = await generateKeys();
    const certificate = await x509.X509CertificateGenerator.createSelfSigned({
      name: distinguishedName(commonName),
      keys,
      signingAlgorithm: ALGORITHM,
      ...validity({}),
      extensions: [
        new x509.BasicConstraintsExtension(true, undefined, true),
        new x509.KeyUsagesExtension(
          x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign,
          true,
        ),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    });
    return new ThrowawayCa(keys, certificate);
  }

  /** The authority's own certificate, PEM. */
  get cert(): string {
    return this.#certificate.toString("pem") + "\n";
  }

  /** Signs a new key. */
  async issue(wish: CertificateWish): Promise<CertificatePair> {
    const keys = await generateKeys();
    const extensions: x509.Extension[] = [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension(usages(wish.usage)),
      await x509.AuthorityKeyIdentifierExtension.create(this.#keys.publicKey),
    ];
    const names = wish.names ?? [];
    if (names.length > 0) {
      extensions.push(
        new x509.SubjectAlternativeNameExtension(names.map(generalName)),
      );
    }
    const certificate = await x509.X509CertificateGenerator.create({
      subject: distinguishedName(wish.commonName),
      issuer: this.#certificate.subject,
      publicKey: keys.publicKey,
      signingKey: this.#keys.privateKey,
      signingAlgorithm: ALGORITHM,
      ...validity(wish),
      extensions,
    });
    return {
      cert: certificate.toString("pem") + "\n",
      key: await exportKey(keys.privateKey),
    };
  }
}

function validity(wish: Pick<CertificateWish, "notBefore" | "notAfter">) {
  return {
    notBefore: wish.notBefore ?? new Date(Date.now() - 3600 * 1000),
    notAfter: wish.notAfter ?? new Date(Date.now() + DAY_MS),
  };
}

function generateKeys(): Promise<CryptoKeyPair> {
  return crypto.subtle.generateKey(
    ALGORITHM,
    true,
    ["sign", "verify"],
  ) as Promise<CryptoKeyPair>;
}

async function exportKey(key: CryptoKey): Promise<string> {
  const octets = await crypto.subtle.exportKey("pkcs8", key);
  return x509.PemConverter.encode(octets, "PRIVATE KEY") + "\n";
}

/** As a list, because a text would have to be escaped. */
function distinguishedName(commonName: string): x509.JsonName {
  return [{ CN: [commonName] }];
}

function usages(usage: CertificateWish["usage"]): x509.ExtendedKeyUsage[] {
  const { serverAuth, clientAuth } = x509.ExtendedKeyUsage;
  if (usage === "both") return [serverAuth, clientAuth];
  return [usage === "server" ? serverAuth : clientAuth];
}

function generalName(name: string): x509.JsonGeneralName {
  const isIp = /^[0-9.]+$/.test(name) || name.includes(":");
  return { type: isIp ? "ip" : "dns", value: name };
}
