/**
 * Sockets that are bound, taken from the store or newly made, with the options
 * that processes with a common address need.
 *
 * @module
 */

import { boundAddress, openSocket, SOCK_STREAM } from "../libc/sockets.ts";
import {
  IPPROTO_TCP,
  setSocketOption,
  SOL_SOCKET,
  TCP_NODELAY,
} from "../libc/socket_option.ts";
import { lastError, type LibC } from "../libc/libc.ts";
import type { DatagramAddress } from "../libc/socket_address.ts";
import { systemError } from "../libc/system_error.ts";
import { keyOfAddress, keyOfPath } from "./socket_key.ts";
import { socketStore } from "./socket_store.ts";

const SO_REUSEADDR = 2;

/** The address that it listens on. */
export type BindAddress =
  | { readonly kind: "tcp"; readonly address: DatagramAddress }
  | { readonly kind: "unix"; readonly path: string; readonly mode: number };

/** A socket that listens. */
export interface Bound {
  /** The bound address; port 0 for a path. */
  readonly address: DatagramAddress;
  /** Sockets of one address: several, when several processes had it. */
  readonly descriptors: readonly number[];
  readonly place: BindAddress;
  /** Another process accepts with it, until `start`. */
  readonly isHeld: boolean;
  /** It does not listen yet, and does with this. */
  readonly backlog?: number;
}

/** @returns `undefined`: the store has none for there. */
export function takeBound(
  library: LibC,
  place: BindAddress,
  backlog: number,
): Bound | undefined {
  const waiting = socketStore()?.take(keyOf(place)) ?? [];
  if (waiting.length === 0) return undefined;
  const descriptors = waiting.map(({ descriptor }) => descriptor);
  for (const descriptor of descriptors) {
    // The process that bound it may have set other options.
    if (place.kind === "tcp") setNoDelay(library, descriptor);
    library.listen(descriptor, backlog);
  }
  return {
    address: addressOf(library, descriptors[0]!, place),
    descriptors,
    place,
    isHeld: waiting[0]!.isHeld || isPassed(place),
  };
}

/** @throws A system error with its `code`. */
export function bindSocket(
  library: LibC,
  name: Uint8Array<ArrayBuffer>,
  place: BindAddress,
  backlog: number,
): Bound {
  const descriptor = openSocket(library, name[0]!, SOCK_STREAM);
  if (place.kind === "tcp") {
    setSocketOption(library, descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
    setNoDelay(library, descriptor);
  }
  const port = place.kind === "tcp" ? place.address.port : undefined;
  const isBound = bindShared(library, descriptor, name, port);
  if (isBound && place.kind === "unix") setMode(library, descriptor, place);
  const isHeld = socketStore()?.sharing?.isHeld === true || isPassed(place);
  // Once it listens, the kernel gives it its share of connections.
  const isLate = isHeld && place.kind === "tcp";
  if (isBound && (isLate || library.listen(descriptor, backlog) === 0)) {
    const address = addressOf(library, descriptor, place);
    const later = isLate ? { backlog } : {};
    return { address, descriptors: [descriptor], place, isHeld, ...later };
  }
  const error = systemError(lastError(library));
  library.close(descriptor);
  throw error;
}

function addressOf(
  library: LibC,
  descriptor: number,
  place: BindAddress,
): DatagramAddress {
  return place.kind === "tcp"
    ? boundAddress(library, descriptor) ?? place.address
    : { hostname: place.path, port: 0 };
}

/**
 * Its mode is set before it listens, so no client can connect with another
 * mode. The umask is not used for that: it belongs to all threads, and other
 * files would get the wrong mode.
 */
function setMode(
  library: LibC,
  descriptor: number,
  { path, mode }: BindAddress & { readonly kind: "unix" },
): void {
  try {
    Deno.chmodSync(path, mode);
  } catch (error) {
    library.close(descriptor);
    throw error;
  }
}

/** The kernel shares no path: one process accepts there, and passes on. */
export function isPassed(place: BindAddress): boolean {
  return place.kind === "unix" && socketStore()?.sharing !== undefined;
}

/**
 * With shared addresses, other processes may bind this one, too.
 *
 * @param port Absent: it is a path, which the kernel does not share.
 */
export function bindShared(
  library: LibC,
  descriptor: number,
  name: Uint8Array<ArrayBuffer>,
  port: number | undefined,
): boolean {
  const store = socketStore();
  const isShared = port !== undefined && store?.sharing !== undefined;
  // The system would choose a port that another process shares.
  const isAlone = store?.sharing?.isAlone === true || port === 0;
  if (isShared && !isAlone) store!.share(descriptor);
  const isBound = library.bind(descriptor, name, name.length) === 0;
  if (isShared && isAlone && isBound) store!.share(descriptor);
  return isBound;
}

/** The processes that share it learn which port the system chose. */
export function reportChoice(
  place: BindAddress,
  { port }: DatagramAddress,
): void {
  if (place.kind !== "tcp" || place.address.port !== 0) return;
  socketStore()?.sharing?.chose("tcp", place.address.hostname, port);
}

/** Accepted sockets inherit it, which saves a call for each (tcp(7)). */
function setNoDelay(library: LibC, descriptor: number): void {
  setSocketOption(library, descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
}

function keyOf(place: BindAddress): string | undefined {
  return place.kind === "tcp"
    ? keyOfAddress("tcp", place.address)
    : keyOfPath(place.path);
}
