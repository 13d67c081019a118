/**
 * Options of a link's TCP socket that the platform has no call for.
 *
 * A link carries many conduits over one socket, so what matters is that the
 * next frame is chosen late: the scheduler can let a small one overtake only
 * what the kernel has not been given yet. Without a C library the options stay
 * as the platform set them.
 *
 * @module
 */

import { parseIpAddress } from "../../proto/peer/ip_address.ts";
import { inetDescriptors, type LibC, nameOf, openLibc } from "./libc.ts";

/** From `netinet/in.h` and `netinet/tcp.h`. */
const IPPROTO_TCP = 6;
const TCP_NODELAY = 1;
const TCP_USER_TIMEOUT = 18;
const TCP_NOTSENT_LOWAT = 25;

/**
 * How much the kernel takes beyond what is on its way. Its send buffer grows to
 * 4 MiB on a long line, and without this limit fills up: 240 ms at 100 Mbit/s
 * that every small frame stands behind. With it a small request beside four
 * downloads took 1.1 times as long as on a line of its own, and 2.9 times
 * without; the downloads were as fast (docs/performance.md).
 */
export const UNSENT_BYTES_MAX: number = 128 * 1024;

/** One end of a connection. */
export interface SocketEnd {
  readonly hostname: string;
  readonly port: number;
}

/**
 * Turns Nagle's algorithm off, which would hold small writes back for up to
 * 40 ms, and bounds what waits in the kernel unsent.
 *
 * @returns Whether the connection between these two ends was found and obeyed.
 */
export function tuneLinkSocket(local: SocketEnd, remote: SocketEnd): boolean {
  const library = openLibc();
  if (library === undefined) return false;
  const [here, there] = [keyOf(local), keyOf(remote)];
  for (
    const { descriptor, local: { address, port } } of inetDescriptors(library)
  ) {
    if (`${address} ${port}` !== here) continue;
    const peer = nameOf(library.getpeername, descriptor);
    if (peer === undefined || `${peer.address} ${peer.port}` !== there) {
      continue;
    }
    return tuneDescriptor(library, descriptor);
  }
  return false;
}

/** The same for a socket whose descriptor is known. */
export function tuneDescriptor(library: LibC, descriptor: number): boolean {
  const set = (option: number, value: number) =>
    library.setsockopt(
      descriptor,
      IPPROTO_TCP,
      option,
      new Uint8Array(new Uint32Array([value]).buffer),
      Uint32Array.BYTES_PER_ELEMENT,
    ) === 0;
  const isPrompt = set(TCP_NODELAY, 1);
  return set(TCP_NOTSENT_LOWAT, UNSENT_BYTES_MAX) && isPrompt;
}

/**
 * From now on the connection is over when its peer acknowledges nothing, or takes
 * nothing, of what waits for it for so long (TCP_USER_TIMEOUT of tcp(7)). Without
 * that the kernel sends it again for a quarter of an hour.
 *
 * @param descriptor `undefined`: it is the platform's, which has no such limit.
 * @param ms 0: the kernel's own way.
 */
export function setUserTimeout(
  descriptor: number | undefined,
  ms: number,
): void {
  const library = openLibc();
  if (ms === 0 || descriptor === undefined || library === undefined) return;
  const bytes = new Uint8Array(new Uint32Array([ms]).buffer);
  library.setsockopt(
    descriptor,
    IPPROTO_TCP,
    TCP_USER_TIMEOUT,
    bytes,
    bytes.length,
  );
}

function keyOf({ hostname, port }: SocketEnd): string {
  return `${parseIpAddress(hostname)} ${port}`;
}
