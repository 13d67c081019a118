/**
 * Client certificates that say names in ways that good manners forbid: any
 * encoding, byte by byte, verified by an authority that signs it all. What
 * unauthenticated peers show is in `odd_certificates.ts`.
 *
 * @module
 */

import type { KeyObject } from "node:crypto";
import type { CertificatePair } from "./throwaway_ca.ts";
import {
  bytes,
  commonName,
  extension,
  keyPem,
  newKeys,
  oid,
  pemOf,
  sequence,
  tlv,
  utf8,
  writeCertificate,
} from "./written_certificate.ts";

/** GeneralNames of a SubjectAltName extension. */
export const general = {
  other: (type: string, text: string): Uint8Array =>
    tlv(0xa0, oid(type), tlv(0xa0, tlv(0x0c, bytes(text)))),
  email: (text: string): Uint8Array => tlv(0x81, bytes(text)),
  dns: (text: string): Uint8Array => tlv(0x82, bytes(text)),
  directory: (name: Uint8Array): Uint8Array => tlv(0xa4, name),
  uri: (text: string): Uint8Array => tlv(0x86, bytes(text)),
  ip: (...bytes: number[]): Uint8Array => tlv(0x87, Uint8Array.from(bytes)),
  registered: (type: string): Uint8Array => tlv(0x88, oid(type).subarray(2)),
};

/** What a certificate is to say, as DER. */
export interface NameSpec {
  /** Relative distinguished names; none: an empty subject. */
  readonly subject?: readonly Uint8Array[];
  /** Each is the list of names of one SubjectAltName extension. */
  readonly names?: readonly (readonly Uint8Array[])[];
}

/** An authority that signs whatever it is told to. */
export class NameCa {
  readonly #key: KeyObject;
  readonly #name: Uint8Array;
  /** Its own certificate, PEM. */
  readonly cert: string;

  constructor(name = "name CA") {
    const { publicKey, privateKey } = newKeys();
    this.#key = privateKey;
    this.#name = sequence(commonName(utf8(name)));
    this.cert = this.#sign(this.#name, publicKey, [
      extension("2.5.29.19", sequence(Uint8Array.of(1, 1, 0xff)), true),
      extension("2.5.29.15", Uint8Array.of(3, 2, 1, 6), true),
    ]);
  }

  /** A client's certificate and its key. */
  issue({ subject = [], names = [] }: NameSpec): CertificatePair {
    const { publicKey, privateKey } = newKeys();
    const cert = this.#sign(sequence(...subject), publicKey, [
      extension("2.5.29.37", sequence(oid("1.3.6.1.5.5.7.3.2"))),
      ...names.map((list) => extension("2.5.29.17", sequence(...list))),
    ]);
    return { cert, key: keyPem(privateKey) };
  }

  #sign(
    subject: Uint8Array,
    key: KeyObject,
    extensions: readonly Uint8Array[],
  ): string {
    const parts = { issuer: this.#name, subject, key, extensions };
    return pemOf(writeCertificate(parts, this.#key));
  }
}
