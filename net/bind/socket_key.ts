/**
 * The key of a listening socket: its kind, and where it is bound. The kernel
 * gives it for a descriptor, and a listener makes it of its address, so a
 * socket that another process has bound finds its listener, in whatever order
 * descriptors come.
 *
 * @module
 */

import { hostPort } from "../../proto/peer/host_port.ts";
import type { LibC } from "../libc/libc.ts";
import {
  type DatagramAddress,
  encodeSocketAddress,
  SocketAddressReader,
} from "../libc/socket_address.ts";
import { SO_TYPE, socketOption, SOL_SOCKET } from "../libc/socket_option.ts";
import { AF_UNIX, SOCK_DGRAM, SOCK_STREAM } from "../libc/sockets.ts";

const FAMILY_BYTES = 2;

const KINDS: ReadonlyMap<number, "tcp" | "udp"> = new Map([
  [SOCK_STREAM, "tcp"],
  [SOCK_DGRAM, "udp"],
]);

/** `struct sockaddr_storage`: any address fits. */
const NAME_BYTES = 128;

/**
 * The key of an IP address and port; an empty host is not looked into.
 *
 * @returns `undefined` where any port will do, or the host is a name.
 */
export function keyOfAddress(
  kind: "tcp" | "udp",
  address: DatagramAddress,
): string | undefined {
  if (address.port === 0) return undefined;
  const encoded = encodeSocketAddress(address);
  return encoded && keyOfName(kind, encoded, encoded.length);
}

/** The key of a unix socket that accepts connections. */
export function keyOfPath(path: string): string {
  return `unix ${path}`;
}

/**
 * The key of an existing socket.
 *
 * @returns `undefined` for a socket that is not bound, or is connected.
 */
export function keyOfDescriptor(
  library: LibC,
  descriptor: number,
): string | undefined {
  const type = socketOption(library, descriptor, SOL_SOCKET, SO_TYPE);
  const kind = type === undefined ? undefined : KINDS.get(type);
  // One that is bound and has no peer will accept, if it does not yet.
  if (kind === undefined || hasPeer(library, descriptor)) return undefined;
  lengthValue[0] = NAME_BYTES;
  if (library.getsockname(descriptor, name, lengthBytes) !== 0) {
    return undefined;
  }
  return keyOfName(kind, name, lengthValue[0]!);
}

function keyOfName(
  kind: "tcp" | "udp",
  bytes: Uint8Array,
  length: number,
): string | undefined {
  if (bytes[0] === AF_UNIX) {
    if (kind !== "tcp") return undefined;
    const path = bytes.subarray(FAMILY_BYTES, length);
    const end = path.indexOf(0);
    const text = path.subarray(0, end < 0 ? path.length : end);
    // No listener has one without a path.
    if (text.length === 0) return undefined;
    return keyOfPath(new TextDecoder().decode(text));
  }
  const reader = new SocketAddressReader(bytes);
  const host = reader.host(0);
  const port = reader.port(0);
  return host === undefined || port === 0
    ? undefined
    : `${kind} ${hostPort(host, port)}`;
}

function hasPeer(library: LibC, descriptor: number): boolean {
  lengthValue[0] = NAME_BYTES;
  return library.getpeername(descriptor, name, lengthBytes) === 0;
}

// One for all, as each call is dealt with at once.
const name = new Uint8Array(NAME_BYTES);
const lengthValue = new Uint32Array(1);
const lengthBytes = new Uint8Array(lengthValue.buffer);
