/**
 * Makes the end of a TCP socket a reset (RST) instead of an end (FIN).
 *
 * A tunnel that turns a reset into an orderly end lies: the peer takes half an
 * answer for a whole one. The platform has no call for it, so the C library's
 * `connect` dissolves the connection (address family AF_UNSPEC), upon which
 * Linux sends RST; the descriptor is looked up by the connection's two
 * addresses. `SO_LINGER` with a time of 0 would not do: the platform calls
 * `shutdown` before `close`, so FIN would leave first.
 *
 * Where that is not possible (no Linux, no permission for FFI) the socket is
 * closed plainly, which is an RST only when bytes of the peer were unread.
 *
 * @module
 */

import { parseIpAddress } from "../../proto/peer/ip_address.ts";
import { errnoName, inetDescriptors, type LibC, openLibc } from "./libc.ts";

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
