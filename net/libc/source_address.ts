/**
 * From which address of ours another one is reached, as the kernel's routes
 * have it. Nothing is sent.
 *
 * @module
 */

import { openLibc } from "./libc.ts";
import {
  encodeSocketAddress,
  SOCKET_ADDRESS_BYTES,
  SocketAddressReader,
} from "./socket_address.ts";

const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0x80000;

/** Any port will do: a route is for all of them. */
const PORT = 53;

/**
 * @returns `undefined`: it cannot be reached; `unknown`: that cannot be known
 *   here.
 */
export function sourceAddress(
  hostname: string,
): string | undefined | "unknown" {
  const library = openLibc();
  const to = encodeSocketAddress({ hostname, port: PORT });
  if (library === undefined || to === undefined) return "unknown";
  const family = to[0]!;
  const descriptor = library.socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  // A machine without IPv6 has no such sockets; one out of descriptors none.
  if (descriptor < 0) return undefined;
  try {
    if (library.connect(descriptor, to, to.length) !== 0) return undefined;
    length[0] = name.length;
    if (library.getsockname(descriptor, name, lengthBytes) !== 0) {
      return undefined;
    }
    return reader.host(0);
  } finally {
    library.close(descriptor);
  }
}

// One for all, as each call is dealt with at once.
const name = new Uint8Array(SOCKET_ADDRESS_BYTES);
const reader = new SocketAddressReader(name);
const length = new Uint32Array(1);
const lengthBytes = new Uint8Array(length.buffer);
