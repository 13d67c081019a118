/**
 * A certificate authority: a P-256 key, its own certificate, and what it signs
 * (RFC 5280). It knows neither files nor a certificate's use.
 *
 * @module
 */

import "reflect-metadata";
import * as x509 from "@peculiar/x509";
import {
  type CertificateFacts,
  certificateFacts,
  CLOCK_SKEW_MS,
  readCertificates,
} from "./certificate.ts";
import {
  exportPrivateKey,
  generateKeyPair,
  importKeyPair,
  P256,
  PkiError,
  publicKeyInfo,
  sha256Hex,
} from "./key_pair.ts";

/** Whose certificate, for what, until when. */
export interface LeafRequest {
  readonly publicKey: CryptoKey;
  readonly commonName: string;
  readonly organizations?: readonly string[];
  /** Subject alternative names. */
  readonly names?: readonly LeafName[];
  /** Whether the holder answers (server), calls (client), or both. */
  readonly usage: "server" | "client" | "both";
  /** Default: an hour ago. */
  readonly notBefore?: Date;
  readonly notAfter: Date;
}

/** One subject alternative name. */
export interface LeafName {
  readonly type: "dns" | "ip" | "url";
  readonly value: string;
}

export class CertificateAuthority {
  readonly facts: CertificateFacts;
  readonly #keys: CryptoKeyPair;
  readonly #certificate: x509.X509Certificate;

  private constructor(keys: CryptoKeyPair, own: x509.X509Certificate) {
    this.#keys = keys;
    this.#certificate = own;
    this.facts = certificateFacts(new Uint8Array(own.rawData));
  }

  /**
   * Makes a new authority with a key of its own.
   *
   * @param commonName Two authorities that are trusted at the same time must
   *   not have the same one: verifiers look issuers up by name.
   */
  static async create(request: {
    readonly commonName: (publicKeySha256: string) => string;
    readonly notAfter: Date;
  }): Promise<CertificateAuthority> {
    const keys = await generateKeyPair();
    const hash = sha256Hex(await publicKeyInfo(keys.publicKey));
    const own = await x509.X509CertificateGenerator.createSelfSigned({
      name: distinguishedName(request.commonName(hash), []),
      keys,
      signingAlgorithm: P256,
      notBefore: new Date(Date.now() - CLOCK_SKEW_MS),
      notAfter: request.notAfter,
      extensions: await authorityExtensions(keys.publicKey, 1),
    });
    return new CertificateAuthority(keys, own);
  }

  /**
   * Reads what {@linkcode CertificateAuthority.export} wrote.
   *
   * @throws {PkiError}
   */
  static async load(pem: string): Promise<CertificateAuthority> {
    const [own] = readCertificates(pem);
    const keys = await importKeyPair(pem);
    const hash = sha256Hex(await publicKeyInfo(keys.publicKey));
    if (own!.publicKeySha256 !== hash) {
      throw new PkiError("its key does not belong to its certificate");
    }
    if (!own!.x509.ca) throw new PkiError("its certificate is not of a CA");
    try {
      return new CertificateAuthority(keys, new x509.X509Certificate(own!.pem));
    } catch (cause) {
      // This reader looks at more of a certificate than the platform's.
      throw new PkiError("its certificate is damaged", { cause });
    }
  }

  /** Its own certificate, PEM. */
  get certificate(): string {
    return this.facts.pem;
  }

  /** Certificate and private key, PEM: everything it is. */
  async export(): Promise<string> {
    return this.certificate + await exportPrivateKey(this.#keys.privateKey);
  }

  /** Signs a leaf. @returns PEM. */
  async issue(request: LeafRequest): Promise<string> {
    const extensions: x509.Extension[] = [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension(usages(request.usage)),
      await x509.AuthorityKeyIdentifierExtension.create(this.#keys.publicKey),
    ];
    const names = request.names ?? [];
    if (names.length > 0) {
      extensions.push(new x509.SubjectAlternativeNameExtension([...names]));
    }
    return await this.#sign({
      subject: distinguishedName(
        request.commonName,
        request.organizations ?? [],
      ),
      publicKey: request.publicKey,
      notBefore: request.notBefore,
      notAfter: request.notAfter,
      extensions,
    });
  }

  /**
   * Cross-signs another authority, so that peers that trust only this one can
   * verify what the other one signs. @returns PEM.
   */
  async vouchFor(other: CertificateAuthority): Promise<string> {
    const { publicKey } = other.#keys;
    const until = Math.min(this.facts.notAfterMs, other.facts.notAfterMs);
    return await this.#sign({
      subject: other.#certificate.subjectName.toJSON(),
      publicKey,
      notAfter: new Date(until),
      extensions: [
        ...await authorityExtensions(publicKey, 0),
        await x509.AuthorityKeyIdentifierExtension.create(this.#keys.publicKey),
      ],
    });
  }

  async #sign(content: {
    readonly subject: x509.JsonName;
    readonly publicKey: CryptoKey;
    readonly notBefore?: Date | undefined;
    readonly notAfter: Date;
    readonly extensions: x509.Extension[];
  }): Promise<string> {
    const certificate = await x509.X509CertificateGenerator.create({
      ...content,
      notBefore: content.notBefore ?? new Date(Date.now() - CLOCK_SKEW_MS),
      issuer: this.#certificate.subject,
      signingKey: this.#keys.privateKey,
      signingAlgorithm: P256,
    });
    return certificate.toString("pem").trimEnd() + "\n";
  }
}

/** Whether the holder of a certificate may call with it. @param pem One. */
export function isForCalling(pem: string): boolean {
  const usage = new x509.X509Certificate(pem)
    .getExtension(x509.ExtendedKeyUsageExtension);
  return usage?.usages.includes(x509.ExtendedKeyUsage.clientAuth) === true;
}

/** @param depth How many authorities may stand below it. */
async function authorityExtensions(
  publicKey: CryptoKey,
  depth: number,
): Promise<x509.Extension[]> {
  return [
    new x509.BasicConstraintsExtension(true, depth, true),
    new x509.KeyUsagesExtension(
      x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign,
      true,
    ),
    await x509.SubjectKeyIdentifierExtension.create(publicKey),
  ];
}

/** As a list, because a text would need escapes. */
function distinguishedName(
  commonName: string,
  organizations: readonly string[],
): x509.JsonName {
  return [
    ...organizations.map((name) => ({ O: [name] })),
    { CN: [commonName] },
  ];
}

function usages(usage: LeafRequest["usage"]): x509.ExtendedKeyUsage[] {
  const { serverAuth, clientAuth } = x509.ExtendedKeyUsage;
  if (usage === "both") return [serverAuth, clientAuth];
  return [usage === "server" ? serverAuth : clientAuth];
}
