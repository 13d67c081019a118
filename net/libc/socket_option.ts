/**
 * Options of a socket (setsockopt(2), getsockopt(2)): numbers, its kind, and
 * how long it lives after a close.
 *
 * @module
 */

import type { LibC } from "./libc.ts";
import type { Timers } from "../../proto/sync/clock.ts";

/** From `asm-generic/socket.h`, `netinet/in.h` and `netinet/tcp.h`. */
export const SOL_SOCKET = 1;
export const SO_TYPE = 3;
export const SO_KEEPALIVE = 9;
export const SO_PROTOCOL = 38;
export const IPPROTO_TCP = 6;
export const TCP_NODELAY = 1;
/** The error since the last question: an `errno`, or 0. */
export const SO_ERROR = 4;
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
  return socketWords(library, descriptor, level, option, 1)?.[0];
}

/**
 * One of `count` words, at most {@linkcode TCP_INFO_WORDS}.
 *
 * @returns A view that the next call changes.
 */
export function socketWords(
  library: LibC,
  descriptor: number,
  level: number,
  option: number,
  count: number,
): Int32Array | undefined {
  lengthValue[0] = count * Int32Array.BYTES_PER_ELEMENT;
  const { getsockopt } = library;
  const failed = getsockopt(descriptor, level, option, bytes, lengthBytes);
  return failed === 0 ? words : undefined;
}

/** Sets one. @returns Whether the kernel took it. */
export function setSocketOption(
  library: LibC,
  descriptor: number,
  level: number,
  option: number,
  value: number,
): boolean {
  words[0] = value;
  return library.setsockopt(descriptor, level, option, bytes, 4) === 0;
}

const SO_COOKIE = 57;

/** What the kernel knows a socket by, whichever descriptor it has. */
export function socketCookie(
  library: LibC,
  descriptor: number,
): bigint | undefined {
  return socketWords(library, descriptor, SOL_SOCKET, SO_COOKIE, 2) &&
    cookie[0];
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
  const count = TCP_INFO_WORDS;
  return socketWords(library, descriptor, IPPROTO_TCP, TCP_INFO, count)
    ?.[TOTAL_RETRANS];
}

// One buffer for all calls, because each call is finished at once: a buffer for
// the C library lies outside V8's heap, and each new one would use memory
// there.
const words = new Int32Array(TCP_INFO_WORDS);
const bytes = new Uint8Array(words.buffer);
const cookie = new BigUint64Array(words.buffer, 0, 1);
const lengthValue = new Uint32Array(1);
const lengthBytes = new Uint8Array(lengthValue.buffer);

const SHUT_WR = 1;

/** How long the peer has to read our last bytes. */
const KERNEL_LINGER_MS = 1_000;

/** Bytes written in this turn leave first. */
const FLUSH_MS = 5;

/**
 * To be called before a socket is closed, whose descriptor this is. If no
 * second descriptor is free, it ends at once.
 */
export function lingerInKernel(
  library: LibC,
  descriptor: number,
  timers: Timers,
): void {
  const kept = library.dup(descriptor);
  if (kept < 0) return;
  timers.after(FLUSH_MS, () => void library.shutdown(kept, SHUT_WR));
  timers.after(KERNEL_LINGER_MS, () => void library.close(kept));
}
