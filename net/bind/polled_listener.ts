/**
 * A listening socket of the C library.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import { lastError, type LibC, openLibc } from "../libc/libc.ts";
import {
  type Pollable,
  type Poller,
  Ready,
  sharedPoller,
} from "../poll/poller.ts";
import {
  type DatagramAddress,
  encodeSocketAddress,
  SOCKET_ADDRESS_BYTES,
  SocketAddressReader,
} from "../libc/socket_address.ts";
import { StreamDescriptor } from "../stream/stream_descriptor.ts";
import { cannotWait, Errno, systemError } from "../libc/system_error.ts";
import { encodeUnixAddress } from "../libc/unix_address.ts";
import { keyOfAddress, keyOfPath } from "./socket_key.ts";
import { type ListeningSocket, socketStore } from "./socket_store.ts";

const SOL_SOCKET = 1;
const SO_REUSEADDR = 2;
const IPPROTO_TCP = 6;
const TCP_NODELAY = 1;
const SOCK_STREAM = 1;
const SOCK_FLAGS = 0x80800; // SOCK_CLOEXEC, SOCK_NONBLOCK
const AF_UNIX = 1;

const INTEREST = Ready.READ | Ready.EDGE;

/** Connections accepted in a row; then others have their turn. */
const ACCEPTS_PER_TURN = 64;

/** Where it listens. */
type BindAddress =
  | { readonly kind: "tcp"; readonly address: DatagramAddress }
  | { readonly kind: "unix"; readonly path: string };

/**
 * Listens on an IP address and port.
 *
 * @returns `undefined` where only the platform can: the host is a name, or
 *   there is no C library.
 * @throws A system error with its `code`.
 */
export function listenPolledTcp(
  address: DatagramAddress,
  backlog: number,
  poller: Poller | undefined = sharedPoller(),
): PolledListener | undefined {
  const name = encodeSocketAddress(address);
  return name && open(name, backlog, { kind: "tcp", address }, poller);
}

/** The same on a path, with the modes that the umask leaves. */
export function listenPolledUnix(
  path: string,
  backlog: number,
  poller: Poller | undefined = sharedPoller(),
): PolledListener | undefined {
  const name = encodeUnixAddress(path);
  return name && open(name, backlog, { kind: "unix", path }, poller);
}

function open(
  name: Uint8Array<ArrayBuffer>,
  backlog: number,
  place: BindAddress,
  poller: Poller | undefined,
): PolledListener | undefined {
  const library = openLibc();
  if (library === undefined || poller === undefined) return undefined;
  const waiting = socketStore()?.take(keyOf(place));
  if (waiting !== undefined) {
    const { descriptor, isHeld } = waiting;
    // The process that bound it may have set other options.
    if (place.kind === "tcp") setNoDelay(library, descriptor);
    library.listen(descriptor, backlog);
    return new PolledListener(library, poller, { descriptor, place, isHeld });
  }
  const descriptor = library.socket(name[0]!, SOCK_STREAM | SOCK_FLAGS, 0);
  if (descriptor < 0) throw systemError(lastError(library));
  if (place.kind === "tcp") {
    library.setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, ON, ON.length);
    setNoDelay(library, descriptor);
  }
  const isUp = library.bind(descriptor, name, name.length) === 0 &&
    library.listen(descriptor, backlog) === 0;
  if (isUp) {
    const bound = { descriptor, place, isHeld: false };
    return new PolledListener(library, poller, bound);
  }
  const error = systemError(lastError(library));
  library.close(descriptor);
  throw error;
}

const ON = new Uint8Array(new Uint32Array([1]).buffer);

/** What is accepted has it from there: a call less for each (tcp(7)). */
function setNoDelay(library: LibC, descriptor: number): void {
  library.setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, ON, ON.length);
}

function keyOf(place: BindAddress): string | undefined {
  return place.kind === "tcp"
    ? keyOfAddress("tcp", place.address)
    : keyOfPath(place.path);
}

/** A socket that listens. */
interface Bound {
  readonly descriptor: number;
  readonly place: BindAddress;
  /** Another process accepts with it, until `start`. */
  readonly isHeld: boolean;
}

export class PolledListener implements Pollable, ListeningSocket {
  /** As bound; port 0 for a path. */
  readonly address: DatagramAddress;
  readonly #library: LibC;
  readonly #poller: Poller;
  /** For a watcher that accepts by itself when the poller notifies it. */
  readonly descriptor: number;
  readonly #isTcp: boolean;
  readonly #localAddress: string;
  #waiting: PromiseWithResolvers<StreamDescriptor> | undefined;
  #acceptedInTurn = 0;
  #state: "held" | "open" | "handed over" | "closed";
  /** Is notified of new connections. */
  #watcher: Pollable = this;
  readonly #unlist: () => void;

  /**
   * @throws {Error} The poller cannot wait for it; the descriptor is closed
   *   then.
   */
  constructor(
    library: LibC,
    poller: Poller,
    { descriptor, place, isHeld }: Bound,
  ) {
    this.#library = library;
    this.#poller = poller;
    this.descriptor = descriptor;
    this.#state = isHeld ? "held" : "open";
    this.#isTcp = place.kind === "tcp";
    this.address = place.kind === "tcp"
      ? boundAddress(library, descriptor) ?? place.address
      : { hostname: place.path, port: 0 };
    this.#localAddress = place.kind === "tcp"
      ? hostPort(this.address.hostname, this.address.port)
      : place.path;
    if (!isHeld && !poller.add(descriptor, INTEREST, this)) {
      library.close(descriptor);
      throw cannotWait();
    }
    this.#unlist = socketStore()?.opened(this) ?? (() => {});
  }

  get isHeld(): boolean {
    return this.#state === "held";
  }

  /** Whether it is for this process to accept. */
  get isOpen(): boolean {
    return this.#state === "open";
  }

  /** From now on `watcher` accepts, by the descriptor. */
  watchedBy(watcher: Pollable): void {
    this.#watcher = watcher;
    if (this.#state !== "open") return;
    this.#poller.add(this.descriptor, INTEREST, watcher);
    // Connections from before the wait are not reported.
    this.#poller.goOn(watcher);
  }

  start(): void {
    if (this.#state !== "held") return;
    this.#state = "open";
    if (!this.#poller.add(this.descriptor, INTEREST, this.#watcher)) {
      throw cannotWait();
    }
  }

  hold(): void {
    if (this.#state !== "open") return;
    this.#state = "held";
    unawaited("accept", this.#poller.release(this.descriptor));
  }

  handedOver(): void {
    if (this.#end("handed over")) void this.#poller.close(this.descriptor);
  }

  /**
   * Closes, and leaves the socket to the next listener there.
   *
   * @returns Its key in the store, where it may stay unwanted; `undefined`: it
   *   is closed, or another process has it.
   */
  leave(): string | undefined {
    const store = socketStore();
    if (store === undefined || this.#state !== "open") {
      this.close();
      return undefined;
    }
    this.#end("closed");
    this.#rejectWaiting();
    return store.put(this.descriptor);
  }

  /**
   * Waits for a connection. One call at a time.
   *
   * @throws {Deno.errors.BadResource} When it is closed.
   * @throws A system error with its `code`.
   */
  accept(): Promise<StreamDescriptor> {
    if (this.#state === "closed") return Promise.reject(closed());
    if (this.#state === "open" && this.#acceptedInTurn < ACCEPTS_PER_TURN) {
      try {
        const stream = this.#acceptNow();
        if (stream !== undefined) return Promise.resolve(stream);
      } catch (error) {
        return Promise.reject(error);
      }
    }
    this.#waiting = Promise.withResolvers();
    return this.#waiting.promise;
  }

  /**
   * As {@linkcode PolledListener.accept}, for one that is there already.
   *
   * @returns `undefined`: there is none, or others have their turn first.
   * @throws A system error with its `code`.
   */
  acceptNow(): StreamDescriptor | undefined {
    return this.#state === "open" && this.#acceptedInTurn < ACCEPTS_PER_TURN
      ? this.#acceptNow()
      : undefined;
  }

  /** Also removes the path, as the platform does. Harmless a second time. */
  close(): void {
    const { isHeld } = this;
    if (this.#end("closed")) {
      // The process that accepts there goes on, and needs the path.
      const isKept = isHeld || socketStore()?.areKept === true;
      // First: once there is no listener, the path may be another process's.
      if (!this.#isTcp && !isKept) removeSocket(this.#localAddress);
      void this.#poller.close(this.descriptor);
    }
    this.#state = "closed";
    this.#rejectWaiting();
  }

  onReady(): void {
    const waiting = this.#waiting;
    if (waiting === undefined || this.#state !== "open") return;
    try {
      const stream = this.#acceptNow();
      if (stream === undefined) return;
      this.#waiting = undefined;
      waiting.resolve(stream);
    } catch (error) {
      this.#waiting = undefined;
      waiting.reject(error);
    }
  }

  /** That connection is lost; the next one is not. */
  onFault(): void {}

  /** @returns Whether the descriptor was this listener's until now. */
  #end(state: "handed over" | "closed"): boolean {
    if (this.#state !== "held" && this.#state !== "open") return false;
    this.#state = state;
    this.#unlist();
    // Another process that has the socket keeps it open, and the kernel would
    // go on reporting.
    this.#poller.release(this.descriptor);
    return true;
  }

  #rejectWaiting(): void {
    this.#waiting?.reject(closed());
    this.#waiting = undefined;
  }

  /** @returns `undefined`: there is none. */
  #acceptNow(): StreamDescriptor | undefined {
    for (;;) {
      nameLength[0] = SOCKET_ADDRESS_BYTES;
      name[0] = AF_UNIX; // An unnamed peer leaves it as it is.
      const descriptor = this.#library.accept4(
        this.descriptor,
        name,
        nameLengthBytes,
        SOCK_FLAGS,
      );
      if (descriptor >= 0) return this.#streamOf(descriptor);
      const number = lastError(this.#library);
      if (number === Errno.EAGAIN) return undefined;
      if (number !== Errno.EINTR) throw systemError(number);
    }
  }

  #streamOf(descriptor: number): StreamDescriptor {
    if (this.#acceptedInTurn++ === 0) setImmediate(this.#nextTurn);
    const host = names.host(0);
    const remoteAddress = host === undefined
      ? "unix"
      : hostPort(host, names.port(0));
    return new StreamDescriptor(this.#library, this.#poller, descriptor, {
      isTcp: this.#isTcp,
      mayRead: true,
      isPrompt: true,
      remoteAddress,
      localAddress: this.#localAddress,
    });
  }

  readonly #nextTurn = () => {
    const wasFull = this.#acceptedInTurn >= ACCEPTS_PER_TURN;
    this.#acceptedInTurn = 0;
    if (wasFull) this.onReady();
  };
}

function closed(): Error {
  return new Deno.errors.BadResource("the listener is closed");
}

function removeSocket(path: string): void {
  try {
    Deno.removeSync(path);
  } catch {
    // It is removed already, or we may not remove it: the next listener there
    // removes a socket file without a listener.
  }
}

function boundAddress(
  library: LibC,
  descriptor: number,
): DatagramAddress | undefined {
  nameLength[0] = SOCKET_ADDRESS_BYTES;
  if (library.getsockname(descriptor, name, nameLengthBytes) !== 0) {
    return undefined;
  }
  const hostname = names.host(0);
  return hostname === undefined ? undefined : { hostname, port: names.port(0) };
}

// One for all, as each call is dealt with at once.
const name = new Uint8Array(SOCKET_ADDRESS_BYTES);
const names = new SocketAddressReader(name);
const nameLength = new Uint32Array(1);
const nameLengthBytes = new Uint8Array(nameLength.buffer);
