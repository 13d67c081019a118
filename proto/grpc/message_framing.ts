/**
 * The five bytes in front of every gRPC message (PROTOCOL-HTTP2,
 * "Length-Prefixed-Message"): a compressed flag and a big-endian length.
 *
 * Layer: gRPC. Knows no limits and keeps no state; `message_reader.ts` does.
 *
 * @module
 */

/** Bytes of a message prefix. */
export const MESSAGE_PREFIX_BYTES = 5;

/** What gRPC implementations accept by default. */
export const MESSAGE_BYTES_MAX_DEFAULT = 4 * 1024 * 1024;

/**
 * Writes the prefix of an uncompressed message into `into` at `offset`.
 *
 * @param messageBytes Below 2^32.
 */
export function writeMessagePrefix(
  into: Uint8Array,
  messageBytes: number,
  offset = 0,
): void {
  into[offset] = 0;
  into[offset + 1] = messageBytes >>> 24;
  into[offset + 2] = messageBytes >>> 16;
  into[offset + 3] = messageBytes >>> 8;
  into[offset + 4] = messageBytes;
}

/** The length that the prefix at the start of `prefix` announces. */
export function readMessageBytes(prefix: Uint8Array): number {
  return prefix[1]! * 0x100_0000 +
    (prefix[2]! << 16 | prefix[3]! << 8 | prefix[4]!);
}

/** `message` with its prefix in front: a copy. */
export function frameMessage(message: Uint8Array): Uint8Array {
  const framed = new Uint8Array(MESSAGE_PREFIX_BYTES + message.length);
  writeMessagePrefix(framed, message.length);
  framed.set(message, MESSAGE_PREFIX_BYTES);
  return framed;
}
