/**
 * Certificate signing requests (PKCS #10, RFC 2986): how the holder of a key
 * requests a certificate. Names and extensions in one are only requested, so
 * only the key and the proof that its holder made the request are read.
 *
 * @module
 */

import "reflect-metadata";
import * as x509 from "@peculiar/x509";
import { P256, PkiError, publicKeyInfo, sha256Hex } from "./key_pair.ts";

/** The longest request that is read; one of ours has about 200 bytes. */
export const SIGNING_REQUEST_BYTES_MAX = 16_384;

/** What a request proves. */
export interface SigningRequest {
  /** P-256; the maker of the request has its private half. */
  readonly publicKey: CryptoKey;
  /** SHA-256 of its SubjectPublicKeyInfo, hex. */
  readonly publicKeySha256: string;
}

/** Makes a request with nothing but its key. @returns DER. */
export async function makeSigningRequest(
  keys: CryptoKeyPair,
): Promise<Uint8Array<ArrayBuffer>> {
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    keys,
    signingAlgorithm: P256,
  });
  return new Uint8Array(request.rawData);
}

/**
 * Reads a request and checks its signature.
 *
 * @param der Untrusted.
 * @throws {PkiError} When it is not a request, its key is not P-256, or its
 *   maker does not have the key.
 */
export async function readSigningRequest(
  der: Uint8Array,
): Promise<SigningRequest> {
  if (der.length > SIGNING_REQUEST_BYTES_MAX) {
    throw new PkiError(
      `Cannot read a signing request of ${der.length} bytes: at most ` +
        `${SIGNING_REQUEST_BYTES_MAX} are allowed`,
    );
  }
  let publicKey: CryptoKey;
  let isProven: boolean;
  try {
    const request = new x509.Pkcs10CertificateRequest(
      new Uint8Array(der).buffer,
    );
    publicKey = await request.publicKey.export(P256, ["verify"]);
    isProven = await request.verify();
  } catch (cause) {
    // ASN.1 readers and WebCrypto throw errors of many classes here.
    throw new PkiError(
      "Cannot read the signing request: it is damaged, or its key is not " +
        "of P-256",
      { cause },
    );
  }
  if (!isProven) {
    throw new PkiError(
      "Cannot accept the signing request: it is not signed by its own key",
    );
  }
  const publicKeySha256 = sha256Hex(await publicKeyInfo(publicKey));
  return { publicKey, publicKeySha256 };
}
