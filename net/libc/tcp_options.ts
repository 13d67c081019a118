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
import { errnoName, inetDescriptors, type LibC, openLibc } from "./libc.ts";

/** From `asm-generic/socket.h`, `netinet/in.h` and `netinet/tcp.h`. */
const SOL_SOCKET = 1;
const SO_KEEPALIVE = 9;
const IPPROTO_TCP = 6;
const TCP_NODELAY = 1;
const TCP_KEEPIDLE = 4;
const TCP_KEEPINTVL = 5;
const TCP_KEEPCNT = 6;
const TCP_USER_TIMEOUT = 18;
const TCP_NOTSENT_LOWAT = 25;

/**
 * How much the kernel takes beyond what is on its way. Its send buffer grows to
 * 4 MiB on a long line, and without this limit fills up: 240 ms at 100 Mbit/s
 * that every small frame stands behind. With it a small request beside four
 * downloads took 1.1 times as long as on a line of its own, and 2.9 times
 * without; the downloads were as fast (lab/performance-notes.md).
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
    const peer = errnoName(library.getpeername, descriptor);
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

/**
 * Finds within 10 s that the peer's machine is gone, or the way to it, where no
 * PING may ask the peer itself: the kernel probes it (TCP keepalive), and gives up
 * what waits for its acknowledgement.
 *
 * @param descriptor `undefined`: it is the platform's, which has no such options.
 * @param silentMs After so long; nothing is done from a minute on, as that is when
 *   all peers are probed (`dead_peers.ts`).
 */
export function probePeer(
  descriptor: number | undefined,
  silentMs: number,
): void {
  const library = openLibc();
  if (descriptor === undefined || library === undefined) return;
  const idleS = Math.max(1, Math.ceil(silentMs / 1000));
  if (idleS >= PROBED_ANYWAY_S) return;
  const set = (level: number, option: number, value: number) => {
    const bytes = new Uint8Array(new Uint32Array([value]).buffer);
    library.setsockopt(descriptor, level, option, bytes, bytes.length);
  };
  set(IPPROTO_TCP, TCP_KEEPIDLE, idleS);
  set(IPPROTO_TCP, TCP_KEEPINTVL, PROBE_INTERVAL_S);
  set(IPPROTO_TCP, TCP_KEEPCNT, PROBES);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 1_000 * (idleS + PROBES));
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
}

/** See `dead_peers.ts`. */
const PROBED_ANYWAY_S = 60;

const PROBE_INTERVAL_S = 1;

/** With the usual 4 s before the first, all is over within 10 s. */
const PROBES = 5;

function keyOf({ hostname, port }: SocketEnd): string {
  return `${parseIpAddress(hostname)} ${port}`;
}
