/**
 * Octets to strings whose code points are the octets, and back.
 *
 * @module
 */

/**
 * The binary string of `octets[start, end)`.
 *
 * Eight at a time: for the short strings of headers this takes half the time of
 * one at a time or of a call with a spread view, and `TextDecoder` has no label
 * for plain octets.
 */
export function binaryString(
  octets: Uint8Array,
  start: number,
  end: number,
): string {
  let text = "";
  let at = start;
  for (; at + 8 <= end; at += 8) {
    text += String.fromCharCode(
      octets[at]!,
      octets[at + 1]!,
      octets[at + 2]!,
      octets[at + 3]!,
      octets[at + 4]!,
      octets[at + 5]!,
      octets[at + 6]!,
      octets[at + 7]!,
    );
  }
  for (; at < end; at++) text += String.fromCharCode(octets[at]!);
  return text;
}

/** Writes a binary string at `offset` and returns the offset behind it. */
export function writeBinaryString(
  text: string,
  into: Uint8Array,
  offset: number,
): number {
  for (let index = 0; index < text.length; index++) {
    into[offset + index] = text.charCodeAt(index);
  }
  return offset + text.length;
}
