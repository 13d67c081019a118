/**
 * Certificates that are written byte by byte: DER (X.690) of any kind, and a
 * signature over whatever a test puts in.
 *
 * @module
 */

import { joinedBytes } from "../../../proto/bytes/byte_arrays.ts";
import { createSign, generateKeyPairSync, type KeyObject } from "node:crypto";

/** One element of DER. */
export function tlv(
  tag: number,
  ...parts: readonly Uint8Array[]
): Uint8Array<ArrayBuffer> {
  const content = joinedBytes(parts);
  return joinedBytes([Uint8Array.of(tag, ...lengthOf(content)), content]);
}

function lengthOf({ length }: Uint8Array): number[] {
  if (length < 0x80) return [length];
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest >>= 8) bytes.unshift(rest & 0xff);
  return [0x80 | bytes.length, ...bytes];
}

/** Bytes of Latin-1 text: one for each character. */
export function bytes(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
}

export function sequence(
  ...parts: readonly Uint8Array[]
): Uint8Array<ArrayBuffer> {
  return tlv(0x30, ...parts);
}

/** An object identifier (X.690 §8.19). */
export function oid(dotted: string): Uint8Array<ArrayBuffer> {
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

/** A UTF8String. */
export function utf8(text: string): Uint8Array<ArrayBuffer> {
  return tlv(0x0c, new TextEncoder().encode(text));
}

/** A relative distinguished name, of types and their values as DER. */
export function relative(
  ...attributes: (readonly [type: string, value: Uint8Array])[]
): Uint8Array<ArrayBuffer> {
  return tlv(
    0x31,
    ...attributes.map(([type, value]) => sequence(oid(type), value)),
  );
}

/** A relative distinguished name of common names; several make it odd. */
export function commonName(...values: Uint8Array[]): Uint8Array<ArrayBuffer> {
  return relative(...values.map((value) => ["2.5.4.3", value] as const));
}

export function extension(
  type: string,
  value: Uint8Array,
  isCritical = false,
): Uint8Array<ArrayBuffer> {
  const critical = isCritical ? [tlv(1, Uint8Array.of(0xff))] : [];
  return sequence(oid(type), ...critical, tlv(4, value));
}

/** GeneralizedTimes, as texts that need be none. */
export function validity(from: string, to: string): Uint8Array<ArrayBuffer> {
  return sequence(tlv(0x18, bytes(from)), tlv(0x18, bytes(to)));
}

/** The text of a moment so many days from now. */
export function dateIn(days: number): string {
  const date = new Date(Date.now() + days * 24 * 3600_000);
  return date.toISOString().replaceAll(/[-:T]|\.[0-9]+/g, "");
}

/** What a certificate says, all of it DER. */
export interface CertificateParts {
  readonly version?: Uint8Array;
  readonly serial?: Uint8Array;
  readonly issuer: Uint8Array;
  /** Default: a day around now. */
  readonly validity?: Uint8Array;
  readonly subject: Uint8Array;
  readonly key: KeyObject;
  readonly extensions?: readonly Uint8Array[];
}

/** @param signer The key of whoever signs it. @returns DER. */
export function writeCertificate(
  parts: CertificateParts,
  signer: KeyObject,
): Uint8Array<ArrayBuffer> {
  const { extensions } = parts;
  const random = crypto.getRandomValues(new Uint8Array(8));
  const algorithm = sequence(oid("1.2.840.10045.4.3.2"));
  const signed = sequence(
    parts.version ?? tlv(0xa0, tlv(2, Uint8Array.of(2))),
    parts.serial ?? tlv(2, Uint8Array.of(1), random),
    algorithm,
    parts.issuer,
    parts.validity ?? validity(dateIn(-1), dateIn(1)),
    parts.subject,
    new Uint8Array(parts.key.export({ type: "spki", format: "der" })),
    ...extensions === undefined ? [] : [tlv(0xa3, sequence(...extensions))],
  );
  const signature = createSign("sha256").update(signed).sign(signer);
  const bits = tlv(3, Uint8Array.of(0), new Uint8Array(signature));
  return sequence(signed, algorithm, bits);
}

export function pemOf(der: Uint8Array): string {
  const lines = der.toBase64().match(/.{1,64}/g)!.join("\n");
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}

/** DER of a certificate in PEM. */
export function derOf(pem: string): Uint8Array<ArrayBuffer> {
  const [, body] = /-----BEGIN CERTIFICATE-----([^-]+)/.exec(pem)!;
  return Uint8Array.fromBase64(body!);
}

export function newKeys(): { publicKey: KeyObject; privateKey: KeyObject } {
  return generateKeyPairSync("ec", { namedCurve: "P-256" });
}

/** PKCS #8, PEM. */
export function keyPem(key: KeyObject): string {
  return String(key.export({ type: "pkcs8", format: "pem" }));
}
