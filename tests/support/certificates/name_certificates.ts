/**
 * Client certificates that say names in ways that good manners forbid: any
 * encoding, byte by byte, verified by an authority that signs it all. What
 * unauthenticated peers show is in `odd_certificates.ts`.
 *
 * @module
 */

import { joinedBytes } from "../../../proto/bytes/byte_arrays.ts";
import { createSign, generateKeyPairSync, type KeyObject } from "node:crypto";
import type { CertificatePair } from "./throwaway_ca.ts";

/** One element of DER. */
export function tlv(
  tag: number,
  ...parts: readonly Uint8Array[]
): Uint8Array<ArrayBuffer> {
  const content = joinedBytes(parts);
  const { length } = content;
  const size = length < 0x80
    ? [length]
    : length < 0x100
    ? [0x81, length]
    : [0x82, length >> 8, length & 0xff];
  return joinedBytes([Uint8Array.of(tag, ...size), content]);
}

/** Bytes of Latin-1 text: one for each character. */
export function bytes(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
}

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

/** A relative distinguished name of common names; several make it odd. */
export function commonName(...values: Uint8Array[]): Uint8Array {
  return relative(...values.map((value) => ["2.5.4.3", value] as const));
}

/** A relative distinguished name, of types and their values as DER. */
export function relative(
  ...attributes: (readonly [type: string, value: Uint8Array])[]
): Uint8Array {
  return tlv(
    0x31,
    ...attributes.map(([type, value]) => tlv(0x30, oid(type), value)),
  );
}

/** A UTF8String. */
export function utf8(text: string): Uint8Array {
  return tlv(0x0c, new TextEncoder().encode(text));
}

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
    this.#name = tlv(0x30, commonName(utf8(name)));
    this.cert = this.#sign(this.#name, publicKey, [
      extension("2.5.29.19", tlv(0x30, Uint8Array.of(1, 1, 0xff)), true),
      extension("2.5.29.15", Uint8Array.of(3, 2, 1, 6), true),
    ]);
  }

  /** A client's certificate and its key. */
  issue({ subject = [], names = [] }: NameSpec): CertificatePair {
    const { publicKey, privateKey } = newKeys();
    const cert = this.#sign(tlv(0x30, ...subject), publicKey, [
      extension("2.5.29.37", tlv(0x30, oid("1.3.6.1.5.5.7.3.2"))),
      ...names.map((list) => extension("2.5.29.17", tlv(0x30, ...list))),
    ]);
    const key = privateKey.export({ type: "pkcs8", format: "pem" });
    return { cert, key: String(key) };
  }

  #sign(
    subject: Uint8Array,
    key: KeyObject,
    extensions: readonly Uint8Array[],
  ): string {
    const algorithm = tlv(0x30, oid("1.2.840.10045.4.3.2"));
    const hour = 3600_000;
    const signed = tlv(
      0x30,
      tlv(0xa0, Uint8Array.of(2, 1, 2)),
      tlv(2, Uint8Array.of(1), crypto.getRandomValues(new Uint8Array(8))),
      algorithm,
      this.#name,
      tlv(0x30, time(Date.now() - hour), time(Date.now() + 24 * hour)),
      subject,
      new Uint8Array(key.export({ type: "spki", format: "der" })),
      tlv(0xa3, tlv(0x30, ...extensions)),
    );
    const signature = createSign("sha256").update(signed).sign(this.#key);
    const der = tlv(
      0x30,
      signed,
      algorithm,
      tlv(3, Uint8Array.of(0), new Uint8Array(signature)),
    );
    const lines = der.toBase64().match(/.{1,64}/g)!.join("\n");
    return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
  }
}

/** DER of a certificate in PEM. */
export function derOf(pem: string): Uint8Array<ArrayBuffer> {
  const [, body] = /-----BEGIN CERTIFICATE-----([^-]+)/.exec(pem)!;
  return Uint8Array.fromBase64(body!);
}

function newKeys() {
  return generateKeyPairSync("ec", { namedCurve: "P-256" });
}

function extension(
  type: string,
  value: Uint8Array,
  isCritical = false,
): Uint8Array {
  const critical = isCritical ? [Uint8Array.of(1, 1, 0xff)] : [];
  return tlv(0x30, oid(type), ...critical, tlv(4, value));
}

function time(ms: number): Uint8Array {
  const text = new Date(ms).toISOString().replace(/[-:T]|\..*/g, "");
  return tlv(0x18, bytes(`${text}Z`));
}

/** An object identifier (X.690 §8.19). */
function oid(dotted: string): Uint8Array<ArrayBuffer> {
  const [first, second, ...rest] = dotted.split(".").map(Number);
  const bytes = [first! * 40 + second!, ...rest].flatMap((arc) => {
    const digits = [arc & 0x7f];
    for (let more = arc >> 7; more > 0; more >>= 7) {
      digits.unshift((more & 0x7f) | 0x80);
    }
    return digits;
  });
  return tlv(6, Uint8Array.from(bytes));
}
