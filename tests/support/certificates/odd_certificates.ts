/**
 * Certificates as no honest authority writes them, byte by byte: what unauthenticated peers
 * may show to a TLS port before anybody has looked at it.
 *
 * @module
 */

import type { KeyObject } from "node:crypto";
import {
  bytes,
  type CertificateParts,
  commonName,
  dateIn,
  extension,
  keyPem,
  newKeys,
  pemOf,
  relative,
  sequence,
  tlv,
  utf8,
  validity,
  writeCertificate,
} from "./written_certificate.ts";

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

/** An authority that signs whatever it is given. */
export interface OddAuthority {
  /** PEM. */
  readonly cert: string;
  /** DER of its name, as it stands in its own certificate. */
  readonly subject: Uint8Array;
  readonly privateKey: KeyObject;
}

/** Makes one, for who is to trust it. */
export function oddAuthority(): OddAuthority {
  const { publicKey: key, privateKey } = newKeys();
  const subject = nameOf("an authority that signs anything");
  const isTrue = tlv(0x01, Uint8Array.of(0xff));
  const extensions = [extension("2.5.29.19", sequence(isTrue), true)];
  const parts = { subject, issuer: subject, key, extensions };
  return {
    cert: pemOf(writeCertificate(parts, privateKey)),
    subject,
    privateKey,
  };
}

/** What differs from an ordinary certificate. */
type Oddity = Partial<Omit<CertificateParts, "key">>;

/**
 * One of each kind.
 *
 * @param signer Default: each signs itself.
 */
export function oddCertificates(
  signer?: OddAuthority,
): readonly OddCertificate[] {
  const { publicKey, privateKey } = newKeys();
  return Object.entries(oddities()).map(([name, oddity]) => {
    const subject = oddity.subject ?? nameOf("odd");
    const der = writeCertificate({
      issuer: signer?.subject ?? subject,
      subject,
      serial: tlv(0x02, Uint8Array.of(7)),
      ...oddity,
      key: publicKey,
    }, signer?.privateKey ?? privateKey);
    return { name, der, cert: pemOf(der), key: keyPem(privateKey) };
  });
}

function oddities(): Record<string, Oddity> {
  const long = "x".repeat(60_000);
  return {
    "an empty subject": { subject: sequence() },
    "an empty subject and issuer": { subject: sequence(), issuer: sequence() },
    "an empty issuer": { issuer: sequence() },
    "an empty subject and a URI": {
      subject: sequence(),
      extensions: [alternatives(tlv(0x86, bytes("spiffe://corp/a")))],
    },
    "an expired one without a subject": {
      subject: sequence(),
      validity: validity(dateIn(-9), dateIn(-8)),
      extensions: [alternatives(tlv(0x86, bytes("spiffe://corp/a")))],
    },
    "a T61String": { subject: name(tlv(0x14, bytes("t\xe9l\xe9"))) },
    "a T61String issuer": { issuer: name(tlv(0x14, bytes("t\xe9l\xe9"))) },
    "a BMPString": { subject: name(tlv(0x1e, new Uint8Array([0, 65, 0]))) },
    "a UniversalString": { subject: name(tlv(0x1c, new Uint8Array(4))) },
    "a subject of bytes": { subject: name(tlv(0x04, Uint8Array.of(1, 2))) },
    "broken UTF-8": {
      subject: name(tlv(0x0c, Uint8Array.of(0xff, 0xfe, 0xc0))),
    },
    "line breaks in the subject": { subject: nameOf("a\n\rERROR forged\n") },
    "control characters": { subject: nameOf("\x00\x1b[31m\u202e") },
    "a subject of 60,000 letters": { subject: nameOf(long) },
    "3,000 names in the subject": {
      subject: sequence(
        ...Array.from({ length: 3_000 }, () => commonName(utf8("n"))),
      ),
    },
    "an unknown attribute": {
      subject: sequence(relative(["1.2.3.4", utf8("v")])),
    },
    "a negative serial number": { serial: tlv(0x02, Uint8Array.of(0x80)) },
    "an empty serial number": { serial: tlv(0x02) },
    "a serial number of 400 bytes": {
      serial: tlv(0x02, new Uint8Array(400).fill(0x7f)),
    },
    "dates that are none": {
      validity: sequence(tlv(0x17, bytes("99")), tlv(0x17, bytes("banana"))),
    },
    "a date in the year 0": {
      validity: validity("00000101000000Z", "99991231235959Z"),
    },
    "an end before its beginning": {
      validity: validity(dateIn(9), dateIn(-9)),
    },
    "alternative names that are none": {
      extensions: [extension("2.5.29.17", Uint8Array.of(0x30, 0x05, 0x82))],
    },
    "an address of five bytes": {
      extensions: [alternatives(tlv(0x87, Uint8Array.of(1, 2, 3, 4, 5)))],
    },
    "a name with commas": {
      extensions: [alternatives(tlv(0x86, bytes("http://x/, DNS:victim")))],
    },
    "an unknown critical extension": {
      extensions: [extension("1.2.3.5", new Uint8Array(0), true)],
    },
    "version 1": { version: new Uint8Array(0) },
    "version 9": { version: tlv(0xa0, tlv(0x02, Uint8Array.of(9))) },
  };
}

/** A subject or issuer of one common name, its value as given. */
const name = (value: Uint8Array) => sequence(commonName(value));
const nameOf = (text: string) => name(utf8(text));

const alternatives = (...names: readonly Uint8Array[]) =>
  extension("2.5.29.17", sequence(...names));
