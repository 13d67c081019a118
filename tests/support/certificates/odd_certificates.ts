/**
 * Certificates as no honest authority writes them, byte by byte: what unauthenticated peers
 * may show to a TLS port before anybody has looked at it.
 *
 * @module
 */

import { joinedBytes } from "../../../proto/bytes/byte_arrays.ts";
import { exportPrivateKey } from "../../../platform/pki/key_pair.ts";

/** A certificate and its key, for a TLS client. */
export interface OddCertificate {
  /** What is odd about it. */
  readonly name: string;
  readonly der: Uint8Array<ArrayBuffer>;
  /** PEM. */
  readonly cert: string;
  /** PKCS #8, PEM. */
  readonly key: string;
}

/** Who signs: its key, and its name as it stands in its own certificate. */
export interface OddSigner {
  readonly privateKey: CryptoKey;
  /** DER of its subject. */
  readonly subject: Uint8Array;
}

/** An authority that signs whatever it is given. */
export interface OddAuthority extends OddSigner {
  /** PEM. */
  readonly cert: string;
}

/** Makes one, for who is to trust it. */
export async function oddAuthority(): Promise<OddAuthority> {
  const keys = await newKeys();
  const subject = nameOf("an authority that signs anything");
  const isAuthority = sequence(
    oid(0x55, 0x1d, 0x13),
    tlv(0x01, bytesOf(0xff)),
    tlv(0x04, sequence(tlv(0x01, bytesOf(0xff)))),
  );
  const spec = { subject, extensions: [isAuthority] };
  const der = await certificateOf(spec, keys, undefined);
  return { cert: pemOf(der), subject, privateKey: keys.privateKey };
}

function newKeys(): Promise<CryptoKeyPair> {
  const algorithm = { name: "ECDSA", namedCurve: "P-256" };
  return crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
}

/** What differs from an ordinary certificate; all of it is DER. */
interface Oddity {
  readonly serial?: Uint8Array;
  readonly subject?: Uint8Array;
  readonly issuer?: Uint8Array;
  readonly validity?: Uint8Array;
  readonly extensions?: readonly Uint8Array[];
  readonly version?: Uint8Array;
}

/**
 * One of each kind.
 *
 * @param signer Default: each signs itself.
 */
export async function oddCertificates(
  signer?: OddSigner,
): Promise<readonly OddCertificate[]> {
  const keys = await newKeys();
  const key = await exportPrivateKey(keys.privateKey);
  const certificates: OddCertificate[] = [];
  for (const [name, oddity] of Object.entries(oddities())) {
    const der = await certificateOf(oddity, keys, signer);
    certificates.push({ name, der, cert: pemOf(der), key });
  }
  return certificates;
}

async function certificateOf(
  oddity: Oddity,
  { publicKey, privateKey }: CryptoKeyPair,
  signer: OddSigner | undefined,
): Promise<Uint8Array<ArrayBuffer>> {
  const spki = new Uint8Array(
    await crypto.subtle.exportKey("spki", publicKey),
  );
  const subject = oddity.subject ?? nameOf("odd");
  const body = sequence(
    oddity.version ?? tlv(0xa0, integer(2)),
    oddity.serial ?? integer(7),
    ECDSA_WITH_SHA256,
    oddity.issuer ?? signer?.subject ?? subject,
    oddity.validity ?? validity(dateIn(-1), dateIn(1)),
    subject,
    spki,
    ...(oddity.extensions === undefined
      ? []
      : [tlv(0xa3, sequence(...oddity.extensions))]),
  );
  const raw = new Uint8Array(
    await crypto.subtle.sign(
      { name: "ECDSA", hash: "SHA-256" },
      signer?.privateKey ?? privateKey,
      body,
    ),
  );
  const signature = sequence(
    unsigned(raw.subarray(0, 32)),
    unsigned(raw.subarray(32)),
  );
  return sequence(body, ECDSA_WITH_SHA256, tlv(0x03, ZERO, signature));
}

function oddities(): Record<string, Oddity> {
  const long = "x".repeat(60_000);
  return {
    "an empty subject": { subject: sequence() },
    "an empty subject and issuer": { subject: sequence(), issuer: sequence() },
    "an empty issuer": { issuer: sequence() },
    "an empty subject and a URI": {
      subject: sequence(),
      extensions: [alternatives(tlv(0x86, text("spiffe://corp/a")))],
    },
    "an expired one without a subject": {
      subject: sequence(),
      validity: validity(dateIn(-9), dateIn(-8)),
      extensions: [alternatives(tlv(0x86, text("spiffe://corp/a")))],
    },
    "a T61String": { subject: name(tlv(0x14, text("t\xe9l\xe9"))) },
    "a T61String issuer": { issuer: name(tlv(0x14, text("t\xe9l\xe9"))) },
    "a BMPString": { subject: name(tlv(0x1e, new Uint8Array([0, 65, 0]))) },
    "a UniversalString": { subject: name(tlv(0x1c, new Uint8Array(4))) },
    "a subject of bytes": { subject: name(tlv(0x04, bytesOf(1, 2))) },
    "broken UTF-8": { subject: name(tlv(0x0c, bytesOf(0xff, 0xfe, 0xc0))) },
    "line breaks in the subject": { subject: nameOf("a\n\rERROR forged\n") },
    "control characters": { subject: nameOf("\x00\x1b[31m\u202e") },
    "a subject of 60,000 letters": { subject: nameOf(long) },
    "3,000 names in the subject": {
      subject: sequence(...Array.from({ length: 3_000 }, () => part("n"))),
    },
    "an unknown attribute": {
      subject: sequence(
        set(sequence(oid(0x2a, 0x03, 0x04), tlv(0x0c, text("v")))),
      ),
    },
    "a negative serial number": { serial: tlv(0x02, bytesOf(0x80)) },
    "an empty serial number": { serial: tlv(0x02) },
    "a serial number of 400 bytes": {
      serial: tlv(0x02, new Uint8Array(400).fill(0x7f)),
    },
    "dates that are none": {
      validity: sequence(tlv(0x17, text("99")), tlv(0x17, text("banana"))),
    },
    "a date in the year 0": {
      validity: validity("00000101000000Z", "99991231235959Z"),
    },
    "an end before its beginning": {
      validity: validity(dateIn(9), dateIn(-9)),
    },
    "alternative names that are none": {
      extensions: [extension(oid(0x55, 0x1d, 0x11), bytesOf(0x30, 0x05, 0x82))],
    },
    "an address of five bytes": {
      extensions: [alternatives(tlv(0x87, bytesOf(1, 2, 3, 4, 5)))],
    },
    "a name with commas": {
      extensions: [alternatives(tlv(0x86, text("http://x/, DNS:victim")))],
    },
    "an unknown critical extension": {
      extensions: [
        sequence(oid(0x2a, 0x03, 0x05), tlv(0x01, bytesOf(0xff)), tlv(0x04)),
      ],
    },
    "version 1": { version: new Uint8Array(0) },
    "version 9": { version: tlv(0xa0, integer(9)) },
  };
}

// DER (X.690) --------------------------------------------------------------

function tlv(tag: number, ...parts: readonly Uint8Array[]) {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return concat(bytesOf(tag, ...lengthOf(length)), ...parts);
}

function lengthOf(length: number): number[] {
  if (length < 0x80) return [length];
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) {
    bytes.unshift(rest % 256);
  }
  return [0x80 | bytes.length, ...bytes];
}

function concat(...parts: readonly Uint8Array[]) {
  return joinedBytes(parts);
}

const bytesOf = (...bytes: readonly number[]) => new Uint8Array(bytes);
const sequence = (...parts: readonly Uint8Array[]) => tlv(0x30, ...parts);
const set = (...parts: readonly Uint8Array[]) => tlv(0x31, ...parts);
const oid = (...bytes: readonly number[]) => tlv(0x06, bytesOf(...bytes));
const integer = (value: number) => tlv(0x02, bytesOf(value));
/** Latin-1, so that a test can write any byte. */
const text = (value: string) =>
  Uint8Array.from(value, (letter) => letter.charCodeAt(0));

const ZERO = bytesOf(0);
const COMMON_NAME = oid(0x55, 0x04, 0x03);
const ECDSA_WITH_SHA256 = sequence(
  oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02),
);

function unsigned(bytes: Uint8Array): Uint8Array {
  let from = 0;
  while (from < bytes.length - 1 && bytes[from] === 0) from++;
  const rest = bytes.subarray(from);
  return rest[0]! >= 0x80 ? tlv(0x02, ZERO, rest) : tlv(0x02, rest);
}

/** A subject or issuer of one common name, its value as given. */
const name = (value: Uint8Array) => sequence(set(sequence(COMMON_NAME, value)));
const part = (value: string) =>
  set(sequence(COMMON_NAME, tlv(0x0c, text(value))));

/** DER of a subject or issuer with one common name. */
export function nameOf(commonName: string): Uint8Array<ArrayBuffer> {
  return name(tlv(0x0c, new TextEncoder().encode(commonName)));
}

function validity(from: string, to: string): Uint8Array {
  return sequence(tlv(0x18, text(from)), tlv(0x18, text(to)));
}

function dateIn(days: number): string {
  const date = new Date(Date.now() + days * 24 * 3600 * 1000);
  return date.toISOString().replaceAll(/[-:T]|\.[0-9]+/g, "");
}

const extension = (id: Uint8Array, value: Uint8Array) =>
  sequence(id, tlv(0x04, value));
const alternatives = (...names: readonly Uint8Array[]) =>
  extension(oid(0x55, 0x1d, 0x11), sequence(...names));

function pemOf(der: Uint8Array): string {
  const lines = der.toBase64().match(/.{1,64}/g)!.join("\n");
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}
