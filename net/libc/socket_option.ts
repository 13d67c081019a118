/**
 * Numbers that the kernel tells of a socket (getsockopt(2)).
 *
 * @module
 */

import type { LibC } from "./libc.ts";

export const SOL_SOCKET = 1;
/** What has gone wrong since it was asked last: an `errno`, or 0. */
export const SO_ERROR = 4;
const IPPROTO_TCP = 6;
const TCP_INFO = 11;

/** `tcpi_total_retrans` of `struct tcp_info` (linux/tcp.h), in words. */
const TOTAL_RETRANS = 25;
const TCP_INFO_WORDS = TOTAL_RETRANS + 1;

/**
 * One number.
 *
 * @param level Such as {@linkcode SOL_SOCKET}.
 * @returns `undefined`: it is no socket, or has no such option.
 */
export function socketOption(
  library: LibC,
  descriptor: number,
  level: number,
  option: number,
): number | undefined {
  const length = Int32Array.BYTES_PER_ELEMENT;
  return ask(library, descriptor, level, option, length) ? words[0] : undefined;
}

/**
 * Segments of a TCP connection that were sent again, its SYN among them: what
 * shows that the line loses packets.
 *
 * @returns `undefined`: it cannot be known.
 */
export function resentSegments(
  library: LibC,
  descriptor: number,
): number | undefined {
  const isKnown = ask(
    library,
    descriptor,
    IPPROTO_TCP,
    TCP_INFO,
    TCP_INFO_WORDS * Int32Array.BYTES_PER_ELEMENT,
  );
  return isKnown ? words[TOTAL_RETRANS] : undefined;
}

function ask(
  library: LibC,
  descriptor: number,
  level: number,
  option: number,
  length: number,
): boolean {
  lengthValue[0] = length;
  return library.getsockopt(descriptor, level, option, bytes, lengthBytes) ===
    0;
}

// One for all, as each call is dealt with at once: what is handed to the C library
// leaves V8's heap, and each would leave some in the C library's.
const words = new Int32Array(TCP_INFO_WORDS);
const bytes = new Uint8Array(words.buffer);
const lengthValue = new Uint32Array(1);
const lengthBytes = new Uint8Array(lengthValue.buffer);
