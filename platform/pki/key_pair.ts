/**
 * Keys: P-256 throughout, which every TLS stack has and no one can make weak.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import { createHash } from "node:crypto";

/** How keys are made and used; WebCrypto's words. */
export const P256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

/** Keys, certificates or requests that cannot be used. */
export class PkiError extends Error {
  override readonly name = "PkiError";
  readonly tunnelCode: Code = "TUN203";
}

/** A new key, which can be exported. */
export function generateKeyPair(): Promise<CryptoKeyPair> {
  return crypto.subtle.generateKey(P256, true, ["sign", "verify"]) as Promise<
    CryptoKeyPair
  >;
}

/** A private key as PKCS #8, PEM. */
export async function exportPrivateKey(key: CryptoKey): Promise<string> {
  const der = new Uint8Array(await crypto.subtle.exportKey("pkcs8", key));
  const lines = der.toBase64().match(/.{1,64}/g)!.join("\n");
  return `-----BEGIN PRIVATE KEY-----\n${lines}\n-----END PRIVATE KEY-----\n`;
}

/**
 * Reads a private key and works out its public half.
 *
 * @param pem PKCS #8; text around it is skipped.
 * @throws {PkiError}
 */
export async function importKeyPair(pem: string): Promise<CryptoKeyPair> {
  const body = /-----BEGIN PRIVATE KEY-----([^-]*)-----END PRIVATE KEY-----/
    .exec(pem)
    ?.[1];
  if (body === undefined) {
    throw new PkiError(`it holds no whole PEM block "BEGIN PRIVATE KEY"`);
  }
  try {
    const der = Uint8Array.fromBase64(body);
    const privateKey = await crypto.subtle
      .importKey("pkcs8", der, P256, true, ["sign"]);
    const { kty, crv, x, y } = await crypto.subtle
      .exportKey("jwk", privateKey) as Required<JsonWebKey>;
    const publicKey = await crypto.subtle
      .importKey("jwk", { kty, crv, x, y }, P256, true, ["verify"]);
    return { privateKey, publicKey };
  } catch (cause) {
    throw new PkiError("its private key is damaged or not of P-256", { cause });
  }
}

/** The SubjectPublicKeyInfo of a key, DER. */
export async function publicKeyInfo(key: CryptoKey): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.exportKey("spki", key));
}

/** SHA-256 in hex. */
export function sha256Hex(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
