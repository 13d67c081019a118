/**
 * A certificate, its key and the CAs to trust, from files, reloadable.
 *
 * Everything is checked when it is read, because the TLS layer reports a broken
 * file as a failed handshake, much later and to the wrong person. A reload that
 * fails leaves the old credentials in use.
 *
 * @module
 */

import { messageOf } from "../../../platform/errors/error_code.ts";
import type { Code } from "../../../proto/codes/codes.ts";
import { guarded } from "../../../platform/errors/internal_errors.ts";
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import {
  certificateSubject,
  isoDate,
} from "../../../platform/pki/certificate_words.ts";
import { FileError } from "../../../platform/files/file_error.ts";

/** PEM files of a certificate chain and its private key; may be one file. */
export interface KeyPairFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Files to read; PEM. A server needs `cert` and `key`, verifying needs `ca`. */
export interface CredentialFiles {
  /** The certificate, and the intermediate ones up to its authority. */
  readonly cert?: string | undefined;
  /** The private key of `cert`. */
  readonly key?: string | undefined;
  /** Several bundles are trusted alike. */
  readonly ca?: string | readonly string[] | undefined;
}

/** The files of a pair among those; none where there is no pair. */
export function pairFiles(
  pair: KeyPairFiles | undefined,
): Pick<CredentialFiles, "cert" | "key"> {
  return pair === undefined ? {} : { cert: pair.certFile, key: pair.keyFile };
}

/** What TLS is given; PEM. Empty texts are absent files. */
export interface TlsMaterial {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

/** No certificate and no CA: one object, for contexts are kept by it. */
export const NO_MATERIAL: TlsMaterial = Object.freeze({
  cert: "",
  key: "",
  ca: "",
});

/** The validity and the subject of a certificate. */
export interface CertificateTerm {
  readonly role: "leaf" | "authority";
  /** Its common name, or all of its subject when it has none. */
  readonly subject: string;
  /** The same of its issuer. */
  readonly issuer: string;
  /** SHA-256, to tell it from its successor. */
  readonly fingerprint: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** How the certificate of `cert` is renewed before it expires. */
export type Renewal = "by hand" | "by itself";

/** Credentials that cannot be used. `message` names the file and the remedy. */
export class CredentialsError extends FileError {
  override readonly name = "CredentialsError";
  override readonly tunnelCode: Code = "TUN203";
}

export class Credentials {
  readonly #files: CredentialFiles;
  readonly #listeners = new Set<(material: TlsMaterial) => void>();
  readonly #failureListeners = new Set<() => void>();
  #checked: Checked;

  private constructor(
    files: CredentialFiles,
    private readonly renewal: Renewal,
  ) {
    this.#files = files;
    this.#checked = read(files, renewal);
  }

  /**
   * @param renewal For the words of warnings.
   * @throws {CredentialsError}
   */
  static load(
    files: CredentialFiles,
    renewal: Renewal = "by hand",
  ): Credentials {
    return new Credentials(files, renewal);
  }

  /** What is in use now. Read it per connection, or listen for changes. */
  get current(): TlsMaterial {
    return this.#checked.material;
  }

  /** Its origin. */
  get files(): readonly string[] {
    const { cert, key, ca } = this.#files;
    return [...new Set([cert ?? [], key ?? [], ca ?? []].flat())];
  }

  /** The certificate that is shown, and the authorities that are trusted. */
  get terms(): readonly CertificateTerm[] {
    return this.#checked.terms;
  }

  /** What is usable but should be looked at, such as an expired certificate. */
  get warnings(): readonly string[] {
    return this.#checked.warnings;
  }

  /**
   * Reads the files again.
   *
   * @returns Whether anything changed.
   * @throws {CredentialsError} With the old credentials still in use.
   */
  reload(): boolean {
    const checked = this.#readAgain();
    const { material: old } = this.#checked;
    this.#checked = checked;
    const { material } = checked;
    if (
      material.cert === old.cert && material.key === old.key &&
      material.ca === old.ca
    ) return false;
    for (const listener of this.#listeners) {
      guarded("identity", () => listener(material));
    }
    return true;
  }

  /**
   * The files' present content; the earlier one while they cannot be read,
   * usually because half of them is replaced.
   */
  latest(): TlsMaterial {
    try {
      this.reload();
    } catch (error) {
      if (!(error instanceof CredentialsError)) throw error;
    }
    return this.current;
  }

  /** Calls `listener` after each change; @returns how to stop that. */
  onChange(listener: (material: TlsMaterial) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Calls `listener` after each reload that failed, before it throws. */
  onFailure(listener: () => void): void {
    this.#failureListeners.add(listener);
  }

  #readAgain(): Checked {
    try {
      const checked = read(this.#files, this.renewal);
      // What renews itself may have been made by a clock that is ahead of ours.
      if (this.renewal === "by hand") {
        this.#refuseWorse(checked.terms, this.#checked.terms);
      }
      return checked;
    } catch (error) {
      for (const listener of this.#failureListeners) {
        guarded("identity", listener);
      }
      throw error;
    }
  }

  /** A certificate that peers refuse does not replace one that they take. */
  #refuseWorse(
    terms: readonly CertificateTerm[],
    old: readonly CertificateTerm[],
  ): void {
    const now = Date.now();
    const leaf = leafOf(terms);
    const oldLeaf = leafOf(old);
    if (leaf === undefined || oldLeaf === undefined) return;
    if (leaf.fingerprint === oldLeaf.fingerprint) return;
    if (isGood(leaf, now) || !isGood(oldLeaf, now)) return;
    const { subject, notBeforeMs, notAfterMs } = leaf;
    const what = `Cannot use certificate ${this.#files.cert} (${subject})`;
    const clock = `our clock says ${nowText()}`;
    if (notAfterMs < now) {
      throw new CredentialsError(
        `${what}: it expired on ${dateOf(notAfterMs)}, and ${clock}; renew it`,
      );
    }
    throw new CredentialsError(
      `${what}: it is valid only from ${dateOf(notBeforeMs)}, and ${clock}; ` +
        "it is read again then",
      { goodFromMs: notBeforeMs },
    );
  }
}

function leafOf(
  terms: readonly CertificateTerm[],
): CertificateTerm | undefined {
  return terms.find(({ role }) => role === "leaf");
}

function isGood(
  { notBeforeMs, notAfterMs }: CertificateTerm,
  now: number,
): boolean {
  return notBeforeMs <= now && now <= notAfterMs;
}

function dateOf(ms: number): string {
  return isoDate(new Date(ms).toUTCString());
}

/** Subjects become labels of metrics; longer ones add nothing. */
const SUBJECT_LENGTH_MAX = 128;

interface Checked {
  readonly material: TlsMaterial;
  readonly terms: readonly CertificateTerm[];
  readonly warnings: readonly string[];
}

function read(files: CredentialFiles, renewal: Renewal): Checked {
  const { cert: certFile, key: keyFile } = files;
  const caFiles = [files.ca ?? []].flat();
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw new CredentialsError(
      certFile === undefined
        ? `Cannot use key ${keyFile}: its certificate was not given`
        : `Cannot use certificate ${certFile}: its key was not given`,
    );
  }
  const cert = certFile === undefined ? "" : readFile("certificate", certFile);
  const key = keyFile === undefined ? "" : onlyKey(readFile("key", keyFile));
  const warnings: string[] = [];
  const terms: CertificateTerm[] = [];
  if (certFile !== undefined && keyFile !== undefined) {
    const [leaf] = parseCertificates("certificate", certFile, cert);
    checkPair(leaf!, certFile, parseKey(keyFile, key), keyFile);
    warnings.push(...checkDates(leaf!, certFile, renewal));
    terms.push(termOf("leaf", leaf!));
  }
  let ca = "";
  for (const caFile of caFiles) {
    const bundle = readFile("CA bundle", caFile);
    for (const authority of parseCertificates("CA bundle", caFile, bundle)) {
      checkVersion(authority, caFile);
      warnings.push(...checkDates(authority, caFile, "by hand"));
      terms.push(termOf("authority", authority));
    }
    ca += bundle.endsWith("\n") ? bundle : bundle + "\n";
  }
  const material = { cert: onlyCertificates(cert), key, ca };
  return { material, terms, warnings };
}

const KEY_BLOCK =
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*-----END [A-Z ]*PRIVATE KEY-----\n?/;

/** One file may hold key and certificates; TLS wants them one by one. */
function onlyKey(pem: string): string {
  return KEY_BLOCK.exec(pem)?.[0] ?? pem;
}

function onlyCertificates(pem: string): string {
  return pem.replace(KEY_BLOCK, "");
}

function readFile(what: string, path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch (error) {
    throw new CredentialsError(
      `Cannot read ${what} ${path}: ${readProblem(error)}`,
      { cause: error },
    );
  }
}

function readProblem(error: unknown): string {
  if (error instanceof Deno.errors.NotFound) {
    return "there is no such file; check the path";
  }
  if (error instanceof Deno.errors.PermissionDenied) {
    return "permission denied; check its owner and mode";
  }
  if (error instanceof Deno.errors.IsADirectory) {
    return "it is a directory; name the file in it";
  }
  return messageOf(error);
}

const CERTIFICATE_BLOCK =
  /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[^-]*(?:-----END (?:TRUSTED |X509 )?CERTIFICATE-----)?/g;

function parseCertificates(
  what: string,
  path: string,
  pem: string,
): X509Certificate[] {
  const blocks = pem.match(CERTIFICATE_BLOCK) ?? [];
  if (blocks.length === 0) {
    throw new CredentialsError(
      `Cannot use ${what} ${path}: it holds ${contentOf(pem)}, ` +
        `wanted a PEM block "BEGIN CERTIFICATE"`,
    );
  }
  return blocks.map((block, index) => {
    try {
      if (!block.includes("-----END")) throw new Error("it has no END line");
      return new X509Certificate(block);
    } catch (error) {
      throw new CredentialsError(
        `Cannot use ${what} ${path}: block ${index + 1} of ${blocks.length} ` +
          `is damaged (${messageOf(error)}); take it from its ` +
          `source again`,
        { cause: error },
      );
    }
  });
}

function contentOf(pem: string): string {
  if (pem.trim() === "") return "nothing";
  const label = /-----BEGIN ([A-Z0-9 ]+)-----/.exec(pem)?.[1];
  return label === undefined ? "no PEM block" : `"BEGIN ${label}"`;
}

function parseKey(path: string, pem: string): KeyObject {
  if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(pem)) {
    throw new CredentialsError(
      `Cannot use key ${path}: it holds ${contentOf(pem)}, ` +
        `wanted a PEM block "BEGIN PRIVATE KEY"`,
    );
  }
  if (/ENCRYPTED/.test(pem)) {
    throw new CredentialsError(
      `Cannot use key ${path}: it is encrypted; store it decrypted, ` +
        `readable by this process only`,
    );
  }
  try {
    return createPrivateKey(pem);
  } catch (error) {
    throw new CredentialsError(
      `Cannot use key ${path}: the block is damaged ` +
        `(${messageOf(error)}); take it from its source again`,
      { cause: error },
    );
  }
}

function checkPair(
  leaf: X509Certificate,
  certFile: string,
  key: KeyObject,
  keyFile: string,
): void {
  if (leaf.checkPrivateKey(key)) return;
  throw new CredentialsError(
    `Cannot use key ${keyFile}: it does not belong to the first certificate ` +
      `in ${certFile} (${certificateSubject(leaf)}); give the pair that was ` +
      `issued together`,
  );
}

function termOf(
  role: CertificateTerm["role"],
  certificate: X509Certificate,
): CertificateTerm {
  const { fingerprint256, validFrom, validTo } = certificate;
  return {
    role,
    subject: shortName(certificateSubject(certificate)),
    issuer: shortName(certificate.issuer.replaceAll("\n", ", ")),
    fingerprint: fingerprint256,
    notBeforeMs: Date.parse(validFrom),
    notAfterMs: Date.parse(validTo),
  };
}

/** The common name, or all of it when it has none. */
function shortName(subject: string): string {
  const name = /(?:^|, )CN=([^,]+)/.exec(subject)?.[1] ?? subject;
  return name.slice(0, SUBJECT_LENGTH_MAX);
}

function checkDates(
  certificate: X509Certificate,
  path: string,
  renewal: Renewal,
): string[] {
  const subject = certificateSubject(certificate);
  if (Date.parse(certificate.validTo) < Date.now()) {
    const remedy = renewal === "by itself"
      ? "it renews itself before it is shown"
      : "peers will refuse it: renew it";
    return [
      `${path} (${subject}) expired on ${isoDate(certificate.validTo)}, and ` +
      `our clock says ${nowText()}; ${remedy}`,
    ];
  }
  if (Date.parse(certificate.validFrom) > Date.now()) {
    return [
      `${path} (${subject}) is valid only from ` +
      `${isoDate(certificate.validFrom)}, and our clock says ${nowText()}; ` +
      "compare the clocks",
    ];
  }
  return [];
}

function nowText(): string {
  return new Date().toISOString();
}

/**
 * Refuses authorities of X.509 version 1. The platform trusts a peer that shows
 * a CA's own certificate and skips the proof of its key for version 1, so
 * anyone could pass for a client with that public file.
 */
function checkVersion(authority: X509Certificate, path: string): void {
  if (hasVersionField(authority.raw)) return;
  throw new CredentialsError(
    `Cannot use CA bundle ${path}: ${
      certificateSubject(authority)
    } is an X.509 ` +
      `version 1 certificate, wanted version 3; issue the CA again`,
  );
}

/** Certificate ::= SEQUENCE { tbs SEQUENCE { [0] version … (RFC 5280 §4.1). */
function hasVersionField(der: Uint8Array): boolean {
  const tbs = contentOffset(der, 0);
  return der[contentOffset(der, tbs)] === 0xa0;
}

/** The offset at which the content of the DER element at `offset` begins. */
function contentOffset(der: Uint8Array, offset: number): number {
  const length = der[offset + 1]!;
  return offset + 2 + (length < 0x80 ? 0 : length & 0x7f);
}
