/**
 * Length-delimited fields, read where they stand.
 *
 * Layer: xDS. protobufjs' own reader copies octets and lets broken UTF-8 pass as
 * something else; names that were something else would never be found.
 *
 * @module
 */

import type protobuf from "protobufjs/minimal.js";

const SHORT_TEXT_OCTETS = 96;
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * The octets of the field whose tag has just been read, as a view.
 *
 * @throws {RangeError} When the field is cut short.
 */
export function readView(reader: protobuf.Reader): Uint8Array {
  const length = reader.size();
  const start = reader.pos;
  if (length > reader.len - start) {
    throw new RangeError(
      `a field claims ${length} octets, ${reader.len - start} are left`,
    );
  }
  reader.pos = start + length;
  return reader.buf.subarray(start, start + length);
}

/** @throws {TypeError} When `octets` are not UTF-8. */
export function readText(octets: Uint8Array): string {
  // Names and versions are ASCII; the platform's decoder takes longer to call
  // than a short loop to run.
  if (octets.length <= SHORT_TEXT_OCTETS && isAscii(octets)) {
    return String.fromCharCode.apply(null, octets as unknown as number[]);
  }
  return UTF8.decode(octets);
}

function isAscii(octets: Uint8Array): boolean {
  let all = 0;
  for (let at = 0; at < octets.length; at++) all |= octets[at]!;
  return all < 0x80;
}
