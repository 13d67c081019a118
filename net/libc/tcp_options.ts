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

import { type LibC, openLibc } from "./libc.ts";
import {
  IPPROTO_TCP,
  setSocketOption,
  SO_KEEPALIVE,
  SOL_SOCKET,
  TCP_NODELAY,
} from "./socket_option.ts";

/** From `asm-generic/socket.h`, `netinet/in.h` and `netinet/tcp.h`. */
const TCP_KEEPIDLE = 4;
const TCP_KEEPINTVL = 5;
const TCP_KEEPCNT = 6;
const TCP_USER_TIMEOUT = 18;
const TCP_NOTSENT_LOWAT = 25;

/**
 * How many unsent bytes the kernel accepts. Its send buffer grows to 4 MiB on a
 * long line, and fills up without this limit: every small frame then waits 240
 * ms at 100 Mbit/s. With it a small request beside four downloads took 1.1
 * times as long as on a line of its own, and 2.9 times without; the downloads
 * were as fast (lab/performance-notes.md).
 */
export const UNSENT_BYTES_MAX: number = 128 * 1024;

/**
 * Turns Nagle's algorithm off, which would delay small writes by up to 40 ms,
 * and limits the unsent bytes in the kernel.
 */
export function tuneDescriptor(library: LibC, descriptor: number): boolean {
  const set = (option: number, value: number) =>
    setSocketOption(library, descriptor, IPPROTO_TCP, option, value);
  const isPrompt = set(TCP_NODELAY, 1);
  return set(TCP_NOTSENT_LOWAT, UNSENT_BYTES_MAX) && isPrompt;
}

/**
 * From now on the connection ends when its peer acknowledges or takes nothing
 * of the waiting bytes for this long (TCP_USER_TIMEOUT of tcp(7)). Without that
 * the kernel repeats them for a quarter of an hour.
 *
 * @param descriptor `undefined`: the socket is the platform's, which has no
 *   such limit.
 * @param ms 0: the kernel's default.
 */
export function setUserTimeout(
  descriptor: number | undefined,
  ms: number,
): void {
  const library = openLibc();
  if (ms === 0 || descriptor === undefined || library === undefined) return;
  setSocketOption(library, descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, ms);
}

/**
 * Finds within 10 s that the peer's machine or the path to it is gone, when the
 * peer must not be sent PINGs: the kernel probes it (TCP keepalive), and gives
 * up unacknowledged bytes.
 *
 * @param descriptor `undefined`: the socket is the platform's, which has no
 *   such options.
 * @param silentMs The silence before a probe; nothing is done from a minute on,
 *   because all peers are probed then (`dead_peers.ts`).
 */
export function probePeer(
  descriptor: number | undefined,
  silentMs: number,
): void {
  const library = openLibc();
  if (descriptor === undefined || library === undefined) return;
  const idleS = Math.max(1, Math.ceil(silentMs / 1000));
  if (idleS >= PROBED_ANYWAY_S) return;
  setUserTimeout(descriptor, 1_000 * (idleS + PROBES));
  const [intervalS, probes] = [PROBE_INTERVAL_S, PROBES];
  keepAlive(library, descriptor, { idleS, intervalS, probes });
}

/** See `dead_peers.ts`. */
const PROBED_ANYWAY_S = 60;

const PROBE_INTERVAL_S = 1;

/** With the usual 4 s before the first probe, all ends within 10 s. */
const PROBES = 5;

/** The kernel asks a peer that is silent whether it is there (TCP keepalive). */
export function keepAlive(
  library: LibC,
  descriptor: number,
  { idleS, intervalS, probes }: {
    readonly idleS: number;
    readonly intervalS: number;
    readonly probes: number;
  },
): void {
  const set = (option: number, value: number) =>
    setSocketOption(library, descriptor, IPPROTO_TCP, option, value);
  set(TCP_KEEPIDLE, idleS);
  set(TCP_KEEPINTVL, intervalS);
  set(TCP_KEEPCNT, probes);
  setSocketOption(library, descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
}
