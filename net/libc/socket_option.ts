/**
 * What the kernel is told of a socket and tells of it (setsockopt(2),
 * getsockopt(2)): numbers, a reset, how long it goes on after a close.
 *
 * @module
 */

import { errnoName, inetDescriptors, type LibC, openLibc } from "./libc.ts";
import { parseIpAddress } from "../../proto/peer/ip_address.ts";
import type { Timers } from "../../proto/sync/clock.ts";

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

/** `struct sockaddr` of family AF_UNSPEC (0). */
const UNSPECIFIED = new Uint8Array(16);

/** Where each connection was seen last, so that many resets need one scan. */
let descriptors = new Map<string, number>();

/**
 * Sends RST on `conn`, which must then be closed.
 *
 * @returns Whether that worked.
 */
export function sendReset(conn: Deno.Conn): boolean {
  const library = openLibc();
  if (library === undefined) return false;
  const wanted = `${keyOf(conn.localAddr)} ${keyOf(conn.remoteAddr)}`;
  let descriptor = descriptors.get(wanted);
  // Descriptors are reused, so what was remembered is checked before use.
  if (descriptor === undefined || endsOf(library, descriptor) !== wanted) {
    descriptors = scan(library);
    descriptor = descriptors.get(wanted);
  }
  if (descriptor === undefined) return false;
  descriptors.delete(wanted);
  return library.connect(descriptor, UNSPECIFIED, UNSPECIFIED.length) === 0;
}

/** All connected TCP sockets of this process, by their two ends. */
function scan(library: LibC): Map<string, number> {
  const found = new Map<string, number>();
  for (const { descriptor } of inetDescriptors(library)) {
    const ends = endsOf(library, descriptor);
    if (ends !== undefined) found.set(ends, descriptor);
  }
  return found;
}

function endsOf(library: LibC, descriptor: number): string | undefined {
  const local = errnoName(library.getsockname, descriptor);
  const remote = errnoName(library.getpeername, descriptor);
  return local === undefined || remote === undefined
    ? undefined
    : `${local.address} ${local.port} ${remote.address} ${remote.port}`;
}

function keyOf(address: Deno.Addr): string {
  if (!("hostname" in address)) return "";
  return `${parseIpAddress(address.hostname)} ${address.port}`;
}

const SHUT_WR = 1;

/** How long the peer has to read our last bytes. */
const KERNEL_LINGER_MS = 1_000;

/** What was written in this turn leaves first. */
const FLUSH_MS = 5;

/**
 * To be called before a socket is closed, whose descriptor this is. Where there
 * is no second descriptor to be had, it ends at once.
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
