/**
 * What the C library does to a socket of the platform, whose descriptor it looks
 * for by the two ends of the connection.
 *
 * @module
 */

import { parseIpAddress } from "../../proto/peer/ip_address.ts";
import { type LibC, openLibc } from "./libc.ts";
import type { DatagramAddress } from "./socket_address.ts";
import { boundAddress, inetDescriptors, peerAddress } from "./sockets.ts";
import { tuneDescriptor } from "./tcp_options.ts";

/** `struct sockaddr` of family AF_UNSPEC (0). */
const UNSPECIFIED = new Uint8Array(16);

/**
 * Sends RST on `conn`, which must then be closed.
 *
 * @returns Whether that worked.
 */
export function sendReset({ localAddr, remoteAddr }: Deno.Conn): boolean {
  if (!("hostname" in localAddr && "hostname" in remoteAddr)) return false;
  return withDescriptor(
    localAddr,
    remoteAddr,
    (library, descriptor) =>
      library.connect(descriptor, UNSPECIFIED, UNSPECIFIED.length) === 0,
  );
}

/**
 * See {@linkcode tuneDescriptor}.
 *
 * @returns Whether the connection between these two ends was found and obeyed.
 */
export function tuneLinkSocket(
  local: DatagramAddress,
  remote: DatagramAddress,
): boolean {
  return withDescriptor(local, remote, tuneDescriptor);
}

/** Where each connection was seen last, so that many calls need one scan. */
let descriptors = new Map<string, number>();

function withDescriptor(
  local: DatagramAddress,
  remote: DatagramAddress,
  act: (library: LibC, descriptor: number) => boolean,
): boolean {
  const library = openLibc();
  if (library === undefined) return false;
  const wanted = keyOf(local, remote);
  let descriptor = descriptors.get(wanted);
  // Descriptors are reused, so a remembered one is checked before use.
  if (descriptor === undefined || endsOf(library, descriptor) !== wanted) {
    descriptors = scan(library);
    descriptor = descriptors.get(wanted);
  }
  return descriptor !== undefined && act(library, descriptor);
}

/** All connected sockets of this process, by their two ends. */
function scan(library: LibC): Map<string, number> {
  const found = new Map<string, number>();
  for (const { descriptor } of inetDescriptors(library)) {
    const ends = endsOf(library, descriptor);
    if (ends !== undefined) found.set(ends, descriptor);
  }
  return found;
}

function endsOf(library: LibC, descriptor: number): string | undefined {
  const local = boundAddress(library, descriptor);
  const remote = peerAddress(library, descriptor);
  return local && remote && keyOf(local, remote);
}

/** An address has one key, however it is written. */
function keyOf(...ends: readonly DatagramAddress[]): string {
  return ends.map(({ hostname, port }) => `${parseIpAddress(hostname)} ${port}`)
    .join(" ");
}
