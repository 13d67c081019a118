/**
 * DER (ITU-T X.690), as far as certificates need it: bytes cut into elements,
 * and their texts and times read. What does not fit is an error, never a guess:
 * a reader of names in it must not read more than the signer wrote.
 *
 * @module
 */

/** Thrown for bytes that are no DER, or DER of a kind that is not read. */
export class DerError extends Error {
  override readonly name = "DerError";
}

/** One tag, its content, and both with the length between them. */
export interface DerElement {
  readonly tag: number;
  readonly content: Uint8Array;
  readonly whole: Uint8Array;
}

/** Tags of X.690 §8 and X.680 §8.6 that occur in certificates. */
export const DerTag = {
  integer: 0x02,
  octetString: 0x04,
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  numericString: 0x12,
  printableString: 0x13,
  teletexString: 0x14,
  ia5String: 0x16,
  utcTime: 0x17,
  generalizedTime: 0x18,
  visibleString: 0x1a,
  universalString: 0x1c,
  bmpString: 0x1e,
  sequence: 0x30,
  set: 0x31,
} as const;

/** Longer lengths than 2^32 are no certificate. */
const LENGTH_BYTES_MAX = 4;

/** The elements that stand one behind the other in `der`. @throws {DerError} */
export function derElements(der: Uint8Array): DerElement[] {
  const elements: DerElement[] = [];
  let at = 0;
  while (at < der.length) {
    const tag = der[at]!;
    // Tags of several bytes: nothing in a certificate has one.
    if ((tag & 0x1f) === 0x1f) throw new DerError("a long tag");
    const { length, size } = lengthAt(der, at + 1);
    const start = at + 1 + size;
    const end = start + length;
    if (end > der.length) throw new DerError("an element is cut off");
    const content = der.subarray(start, end);
    elements.push({ tag, content, whole: der.subarray(at, end) });
    at = end;
  }
  return elements;
}

/** The elements inside of one that must have this tag. @throws {DerError} */
export function derInside(
  element: DerElement | undefined,
  tag: number,
): DerElement[] {
  if (element?.tag !== tag) {
    throw new DerError(`wanted tag ${tag}, got ${element?.tag ?? "nothing"}`);
  }
  return derElements(element.content);
}

/** Lengths in definite form; BER's indefinite one (0x80) is not DER. */
function lengthAt(
  der: Uint8Array,
  at: number,
): { readonly length: number; readonly size: number } {
  const first = der[at];
  if (first === undefined) throw new DerError("an element is cut off");
  if (first < 0x80) return { length: first, size: 1 };
  const count = first & 0x7f;
  if (count === 0 || count > LENGTH_BYTES_MAX) {
    throw new DerError("a length that is not read");
  }
  let length = 0;
  for (let index = 1; index <= count; index++) {
    const byte = der[at + index];
    if (byte === undefined) throw new DerError("an element is cut off");
    length = length * 256 + byte;
  }
  return { length, size: 1 + count };
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const UTF16 = new TextDecoder("utf-16be", { fatal: true, ignoreBOM: true });

/**
 * The text of a character string.
 *
 * @returns `undefined` when the bytes are not valid text, or contain control
 *   characters: a NUL in a name has fooled more than one reader.
 */
export function derText({ tag, content }: DerElement): string | undefined {
  const text = decoded(tag, content);
  return text === undefined || CONTROL.test(text) ? undefined : text;
}

// deno-lint-ignore no-control-regex -- they are what is looked for
const CONTROL = /[\x00-\x1f\x7f-\x9f]/;

function decoded(tag: number, content: Uint8Array): string | undefined {
  try {
    switch (tag) {
      case DerTag.utf8String:
        return UTF8.decode(content);
      case DerTag.bmpString:
        return UTF16.decode(content);
      case DerTag.universalString:
        return universalText(content);
      case DerTag.printableString:
      case DerTag.ia5String:
      case DerTag.visibleString:
      case DerTag.numericString:
      // T.61's upper half is read in a different way by everybody.
      case DerTag.teletexString:
        return asciiText(content);
      default:
        return undefined;
    }
  } catch (error) {
    // The decoders' TypeError, or the RangeError of a code point.
    if (error instanceof TypeError || error instanceof RangeError) {
      return undefined;
    }
    throw error;
  }
}

/** Text of bytes below 0x80. */
export function asciiText(content: Uint8Array): string | undefined {
  return content.every((byte) => byte < 0x80)
    ? UTF8.decode(content)
    : undefined;
}

function universalText(content: Uint8Array): string | undefined {
  if (content.length % 4 !== 0) return undefined;
  const view = new DataView(
    content.buffer,
    content.byteOffset,
    content.byteLength,
  );
  let text = "";
  for (let at = 0; at < content.length; at += 4) {
    const point = view.getUint32(at);
    if (point >= 0xd800 && point < 0xe000) return undefined;
    text += String.fromCodePoint(point);
  }
  return text;
}

/** Milliseconds since 1970 of a time as RFC 5280 §4.1.2.5 wants it, or NaN. */
export function derTime({ tag, content }: DerElement): number {
  const text = asciiText(content) ?? "";
  const digits = /^(\d{2}|\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(text);
  if (digits === null) return NaN;
  const [, year, month, day, hour, minute, second] = digits;
  const isShort = year!.length === 2;
  if (isShort !== (tag === DerTag.utcTime)) return NaN;
  const century = !isShort ? "" : Number(year) < 50 ? "20" : "19";
  return Date.parse(
    `${century}${year}-${month}-${day}T${hour}:${minute}:${second}Z`,
  );
}
