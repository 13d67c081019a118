/**
 * Sockets as the C library makes, accepts and names them (socket(2), accept4(2),
 * getsockname(2)), all closed on exec, and none waited for.
 *
 * @module
 */

import { hostPort } from "../../proto/peer/host_port.ts";
import { DESCRIPTOR_GAP_MAX, lastError, type LibC, openLibc } from "./libc.ts";
import {
  type DatagramAddress,
  encodeSocketAddress,
  SOCKET_ADDRESS_BYTES,
  SocketAddressReader,
} from "./socket_address.ts";
import { systemError } from "./system_error.ts";

/** From `bits/socket.h`. */
export const AF_UNIX = 1;
export const SOCK_STREAM = 1;
export const SOCK_DGRAM = 2;
export const SOCK_SEQPACKET = 5;

const SOCK_CLOEXEC = 0x80000;
const SOCK_NONBLOCK = 0x800;
const FLAGS = SOCK_CLOEXEC | SOCK_NONBLOCK;

/** @throws {Error} A system error. */
export function openSocket(
  library: LibC,
  family: number,
  type: number,
): number {
  const descriptor = library.socket(family, type | FLAGS, 0);
  if (descriptor < 0) throw systemError(lastError(library));
  return descriptor;
}

/**
 * Two ends of one.
 *
 * @param isPatient A write waits for room, as a program expects of its stderr.
 * @throws {Error} A system error.
 */
export function socketPair(
  library: LibC,
  type: number,
  isPatient = false,
): readonly [near: number, far: number] {
  const flags = isPatient ? SOCK_CLOEXEC : FLAGS;
  if (library.socketpair(AF_UNIX, type | flags, 0, endBytes) !== 0) {
    throw systemError(lastError(library));
  }
  return [ends[0]!, ends[1]!];
}

/** @returns Below 0: {@linkcode lastError} says why. */
export function acceptSocket(library: LibC, listening: number): number {
  nameLength[0] = SOCKET_ADDRESS_BYTES;
  name[0] = AF_UNIX; // An unnamed peer leaves it as it is.
  return library.accept4(listening, name, nameLengthBytes, FLAGS);
}

/**
 * The peer that was accepted last, such as `10.0.0.7:49152`; `undefined`: it
 * came by a path.
 */
export function acceptedFrom(): string | undefined {
  const host = names.host(0);
  return host === undefined ? undefined : hostPort(host, names.port(0));
}

/**
 * A listener for all addresses has one name for all connections: only the kernel
 * knows which address a single caller has connected to.
 *
 * @returns `undefined`: it is no TCP or UDP socket.
 */
export function boundAddress(
  library: LibC,
  descriptor: number,
): DatagramAddress | undefined {
  return addressOf(library.getsockname, descriptor);
}

/** The other end. */
export function peerAddress(
  library: LibC,
  descriptor: number,
): DatagramAddress | undefined {
  return addressOf(library.getpeername, descriptor);
}

function addressOf(
  call: LibC["getsockname"],
  descriptor: number,
): DatagramAddress | undefined {
  nameLength[0] = SOCKET_ADDRESS_BYTES;
  if (call(descriptor, name, nameLengthBytes) !== 0) return undefined;
  const hostname = names.host(0);
  return hostname === undefined ? undefined : { hostname, port: names.port(0) };
}

/** Any port will do: a route is for all of them. */
const ROUTE_PORT = 53;

/**
 * Our address from which another address is reached, by the kernel's routes.
 * Nothing is sent.
 *
 * @returns `undefined`: there is no route; `unknown`: it cannot be asked here.
 */
export function sourceAddress(
  hostname: string,
): string | undefined | "unknown" {
  const library = openLibc();
  const to = encodeSocketAddress({ hostname, port: ROUTE_PORT });
  if (library === undefined || to === undefined) return "unknown";
  const descriptor = library.socket(to[0]!, SOCK_DGRAM | FLAGS, 0);
  // A machine without IPv6 has no such sockets; one out of descriptors none.
  if (descriptor < 0) return undefined;
  try {
    return library.connect(descriptor, to, to.length) === 0
      ? boundAddress(library, descriptor)?.hostname
      : undefined;
  } finally {
    library.close(descriptor);
  }
}

/** The TCP and UDP sockets of this process, with their own addresses. */
export function* inetDescriptors(
  library: LibC,
): Generator<{ descriptor: number; local: DatagramAddress }> {
  let last = 0;
  for (
    let descriptor = 0;
    descriptor - last < DESCRIPTOR_GAP_MAX;
    descriptor++
  ) {
    const local = boundAddress(library, descriptor);
    if (local === undefined) continue;
    last = descriptor;
    yield { descriptor, local };
  }
}

// One for all, as each call is dealt with at once.
const name = new Uint8Array(SOCKET_ADDRESS_BYTES);
const names = new SocketAddressReader(name);
const nameLength = new Uint32Array(1);
const nameLengthBytes = new Uint8Array(nameLength.buffer);
const ends = new Int32Array(2);
const endBytes = new Uint8Array(ends.buffer);
