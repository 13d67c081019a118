/**
 * What a certificate states of its holder, read out of its DER (RFC 5280 §4.1).
 *
 * Never out of a text made of it: such a text joins names with commas, and a
 * URI or an e-mail address may have a comma in it, so that one name becomes
 * several (CVE-2021-44532).
 *
 * It verifies nothing. Names that cannot be read are left out: they prove
 * nothing.
 *
 * @module
 */

import { canonicalIp, formatIpAddress } from "../../proto/peer/ip_address.ts";
import {
  asciiText,
  type DerElement,
  derElements,
  DerError,
  derInside,
  DerTag,
  derText,
  derTime,
} from "./der.ts";

export interface CertificateContents {
  /** In hex, upper case, without leading zeros. */
  readonly serialNumber: string;
  /** When it ends, milliseconds since 1970; NaN: it cannot be read. */
  readonly notAfterMs: number;
  /** The subject; `undefined` when it cannot be read. */
  readonly commonNames: readonly (string | undefined)[];
  readonly organizations: readonly string[];
  /** Such as `DNS:a`, `IP Address:::1`, `URI:…` and `email:…`. */
  readonly names: readonly string[];
  /** SubjectPublicKeyInfo, DER. */
  readonly publicKeyInfo: Uint8Array;
}

/** Object identifiers as they stand in DER, in hex. */
const COMMON_NAME = "550403"; // 2.5.4.3
const ORGANIZATION = "55040a"; // 2.5.4.10
const SUBJECT_ALT_NAME = "551d11"; // 2.5.29.17

/** GeneralName's context tags (RFC 5280 §4.2.1.6) of the kinds that are read. */
const EMAIL = 0x81;
const DNS = 0x82;
const URI = 0x86;
const IP_ADDRESS = 0x87;

/** A peer whose certificate TLS accepts and we cannot read has no names. */
const NOTHING: CertificateContents = {
  serialNumber: "",
  notAfterMs: NaN,
  commonNames: [],
  organizations: [],
  names: [],
  publicKeyInfo: new Uint8Array(),
};

/** The contents of `der`; nothing when it is no certificate. */
export function certificateContents(der: Uint8Array): CertificateContents {
  try {
    return readCertificate(der);
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    return NOTHING;
  }
}

/** @throws {DerError} When `der` is no certificate. */
export function readCertificate(der: Uint8Array): CertificateContents {
  const [certificate] = derElements(der);
  const [signed] = derInside(certificate, DerTag.sequence);
  const fields = derInside(signed, DerTag.sequence);
  if (fields[0]?.tag === 0xa0) fields.shift(); // the version
  const [serial, , , validity, subject, key, ...rest] = fields;
  if (serial?.tag !== DerTag.integer) throw new DerError("no serial number");
  if (key?.tag !== DerTag.sequence) throw new DerError("no public key");
  const [, notAfter] = derInside(validity, DerTag.sequence);
  const attributes = attributesOf(subject);
  return {
    serialNumber: serialOf(serial),
    notAfterMs: notAfter === undefined ? NaN : derTime(notAfter),
    commonNames: valuesOf(attributes, COMMON_NAME),
    organizations: valuesOf(attributes, ORGANIZATION)
      .filter((name) => name !== undefined),
    names: alternativeNames(rest.find(({ tag }) => tag === 0xa3)),
    publicKeyInfo: key.whole,
  };
}

function serialOf({ content }: DerElement): string {
  return content.toHex().replace(/^(?:00)+(?=.)/, "").toUpperCase();
}

/** One attribute of a distinguished name: its type in hex, and its value. */
type Attribute = readonly [type: string, value: DerElement];

/** A name is relative names one behind the other, each of several attributes. */
function attributesOf(name: DerElement | undefined): Attribute[] {
  return derInside(name, DerTag.sequence).flatMap((relative) =>
    derInside(relative, DerTag.set).map((attribute): Attribute => {
      const [type, value] = derInside(attribute, DerTag.sequence);
      if (type?.tag !== DerTag.objectIdentifier || value === undefined) {
        throw new DerError("an attribute without type or value");
      }
      return [type.content.toHex(), value];
    })
  );
}

function valuesOf(
  attributes: readonly Attribute[],
  wanted: string,
): (string | undefined)[] {
  return attributes.filter(([type]) => type === wanted)
    .map(([, value]) => derText(value));
}

/** @param extensions As they stand in the certificate; absent: there are none. */
function alternativeNames(extensions: DerElement | undefined): string[] {
  if (extensions === undefined) return [];
  const [list] = derElements(extensions.content);
  const found = derInside(list, DerTag.sequence)
    .map((extension) => derInside(extension, DerTag.sequence))
    .filter(([type]) => type?.content.toHex() === SUBJECT_ALT_NAME);
  // Each kind may be there once (§4.2): of two, readers choose differently.
  if (found.length !== 1) return [];
  const value = found[0]!.at(-1);
  if (value?.tag !== DerTag.octetString) throw new DerError("no names");
  const [names] = derElements(value.content);
  const texts = derInside(names, DerTag.sequence).map(generalName);
  return [...new Set(texts.filter((text) => text !== undefined))];
}

/** @returns `undefined` for kinds that prove nothing here, and for nonsense. */
function generalName({ tag, content }: DerElement): string | undefined {
  switch (tag) {
    case EMAIL:
      return labelled("email:", content);
    case DNS:
      return labelled("DNS:", content);
    case URI:
      return labelled("URI:", content);
    case IP_ADDRESS:
      if (content.length !== 4 && content.length !== 16) return undefined;
      return `IP Address:${canonicalIp(formatIpAddress(content))}`;
    default:
      return undefined;
  }
}

/** These are IA5Strings under a tag of their own. */
function labelled(label: string, content: Uint8Array): string | undefined {
  if (content.length === 0 || asciiText(content) === undefined) {
    return undefined;
  }
  const text = derText({ tag: DerTag.ia5String, content, whole: content });
  return text === undefined ? undefined : label + text;
}
