/**
 * Bytes to strings whose code points are the bytes, and back.
 *
 * @module
 */

/**
 * The binary string of `bytes[start, end)`.
 *
 * Eight at a time: for the short strings of headers this takes half the time of
 * one at a time or of a call with a spread view, and `TextDecoder` has no label
 * for plain bytes.
 */
export function binaryString(
  bytes: Uint8Array,
  start: number,
  end: number,
): string {
  let text = "";
  let at = start;
  for (; at + 8 <= end; at += 8) {
    text += String.fromCharCode(
      bytes[at]!,
      bytes[at + 1]!,
      bytes[at + 2]!,
      bytes[at + 3]!,
      bytes[at + 4]!,
      bytes[at + 5]!,
      bytes[at + 6]!,
      bytes[at + 7]!,
    );
  }
  for (; at < end; at++) text += String.fromCharCode(bytes[at]!);
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
