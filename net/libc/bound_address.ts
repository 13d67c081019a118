/**
 * Which address of this machine a socket has.
 *
 * A listener for all addresses has one name for all connections: only the
 * kernel knows which address a single caller has connected to.
 *
 * @module
 */

import type { LibC } from "./libc.ts";
import {
  type DatagramAddress,
  SOCKET_ADDRESS_BYTES,
  SocketAddressReader,
} from "./socket_address.ts";

/** @returns IPv4 as IPv4; `undefined`: it is no TCP or UDP socket. */
export function boundAddress(
  library: LibC,
  descriptor: number,
): DatagramAddress | undefined {
  length[0] = SOCKET_ADDRESS_BYTES;
  if (library.getsockname(descriptor, name, lengthBytes) !== 0) {
    return undefined;
  }
  const hostname = names.host(0);
  return hostname === undefined ? undefined : { hostname, port: names.port(0) };
}

// One for all, as each call is dealt with at once.
const name = new Uint8Array(SOCKET_ADDRESS_BYTES);
const names = new SocketAddressReader(name);
const length = new Uint32Array(1);
const lengthBytes = new Uint8Array(length.buffer);
