/**
 * A listening socket of the C library.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import {
  acceptedFrom,
  acceptSocket,
  boundAddress,
  openSocket,
  SOCK_STREAM,
} from "../libc/sockets.ts";
import {
  IPPROTO_TCP,
  setSocketOption,
  SOL_SOCKET,
  TCP_NODELAY,
} from "../libc/socket_option.ts";
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
} from "../libc/socket_address.ts";
import { StreamDescriptor } from "../stream/stream_descriptor.ts";
import { cannotWait, Errno, systemError } from "../libc/system_error.ts";
import { encodeUnixAddress } from "../libc/unix_address.ts";
import { keyOfAddress, keyOfPath } from "./socket_key.ts";
import {
  type ListeningSocket,
  socketStore,
  type WaitingSocket,
} from "./socket_store.ts";

const SO_REUSEADDR = 2;

const INTEREST = Ready.READ | Ready.EDGE;

/** Connections accepted in a row; then others have their turn. */
const ACCEPTS_PER_TURN = 64;

/** Where it listens. */
type BindAddress =
  | { readonly kind: "tcp"; readonly address: DatagramAddress }
  | { readonly kind: "unix"; readonly path: string; readonly mode: number };

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
  const at = address.port !== 0 ? address : {
    hostname: address.hostname,
    port: socketStore()?.sharing?.portFor("tcp", address.hostname) ?? 0,
  };
  const name = encodeSocketAddress(at);
  return name && open(name, backlog, { kind: "tcp", address: at }, poller);
}

/**
 * The same on a path.
 *
 * @param mode Of its file, whatever the umask.
 */
export function listenPolledUnix(
  path: string,
  backlog: number,
  mode: number,
  poller: Poller | undefined = sharedPoller(),
): PolledListener | undefined {
  const name = encodeUnixAddress(path);
  return name && open(name, backlog, { kind: "unix", path, mode }, poller);
}

function open(
  name: Uint8Array<ArrayBuffer>,
  backlog: number,
  place: BindAddress,
  poller: Poller | undefined,
): PolledListener | undefined {
  const library = openLibc();
  if (library === undefined || poller === undefined) return undefined;
  const store = socketStore();
  const [waiting, ...others] = store?.take(keyOf(place)) ?? [];
  if (waiting !== undefined) {
    for (const { descriptor } of [waiting, ...others]) {
      // The process that bound it may have set other options.
      if (place.kind === "tcp") setNoDelay(library, descriptor);
      library.listen(descriptor, backlog);
    }
    const isHeld = waiting.isHeld || isPassed(place);
    const bound = { descriptor: waiting.descriptor, place, isHeld, others };
    return new PolledListener(library, poller, bound);
  }
  const descriptor = openSocket(library, name[0]!, SOCK_STREAM);
  if (place.kind === "tcp") {
    setSocketOption(library, descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
    setNoDelay(library, descriptor);
  }
  const isBound = bindShared(library, descriptor, name, place);
  if (isBound && place.kind === "unix") setMode(library, descriptor, place);
  const isHeld = store?.sharing?.isHeld === true || isPassed(place);
  // Once it listens, the kernel gives it its share of connections.
  const isLate = isHeld && place.kind === "tcp";
  if (isBound && (isLate || library.listen(descriptor, backlog) === 0)) {
    const later = isLate ? { backlog } : {};
    const bound = { descriptor, place, isHeld, others: [], ...later };
    const listener = new PolledListener(library, poller, bound);
    reportChoice(place, listener.address);
    return listener;
  }
  const error = systemError(lastError(library));
  library.close(descriptor);
  throw error;
}

/**
 * Nobody connects before it listens, so there is no moment with other modes. Not
 * by the umask: that is every thread's, and files that others make meanwhile
 * would have too few.
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
function isPassed(place: BindAddress): boolean {
  return place.kind === "unix" && socketStore()?.sharing !== undefined;
}

/** Where addresses are shared, others may bind this one, too. */
function bindShared(
  library: LibC,
  descriptor: number,
  name: Uint8Array<ArrayBuffer>,
  place: BindAddress,
): boolean {
  const store = socketStore();
  const isShared = place.kind === "tcp" && store?.sharing !== undefined;
  // The system would choose a port that another process shares.
  const isAlone = store?.sharing?.isAlone === true ||
    (place.kind === "tcp" && place.address.port === 0);
  if (isShared && !isAlone) store!.share(descriptor);
  const isBound = library.bind(descriptor, name, name.length) === 0;
  if (isShared && isAlone && isBound) store!.share(descriptor);
  return isBound;
}

function reportChoice(place: BindAddress, { port }: DatagramAddress): void {
  if (place.kind !== "tcp" || place.address.port !== 0) return;
  socketStore()?.sharing?.chose("tcp", place.address.hostname, port);
}

/** What is accepted has it from there: a call less for each (tcp(7)). */
function setNoDelay(library: LibC, descriptor: number): void {
  setSocketOption(library, descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
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
  /** More sockets of the same address, which several processes had. */
  readonly others: readonly WaitingSocket[];
  /** It does not listen yet, and does with this. */
  readonly backlog?: number;
}

export class PolledListener implements Pollable, ListeningSocket {
  /** As bound; port 0 for a path. */
  readonly address: DatagramAddress;
  readonly descriptor: number;
  /** All, for a watcher that accepts by itself when the poller notifies it. */
  readonly descriptors: number[];
  /** Those of `descriptors` that are another process's. */
  #adopted: number[] = [];
  /** Accepted by another process for this one, or just before it was closed. */
  readonly #passed: StreamDescriptor[] = [];
  /** It does not listen yet. */
  #backlog: number | undefined;
  readonly #isTcp: boolean;
  /** Of a unix socket. */
  readonly #path: string | undefined;
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
    private readonly library: LibC,
    private readonly poller: Poller,
    { descriptor, place, isHeld, others, backlog }: Bound,
  ) {
    this.descriptor = descriptor;
    this.descriptors = [descriptor, ...others.map((one) => one.descriptor)];
    this.#state = isHeld ? "held" : "open";
    this.#backlog = backlog;
    this.#isTcp = place.kind === "tcp";
    this.address = place.kind === "tcp"
      ? boundAddress(library, descriptor) ?? place.address
      : { hostname: place.path, port: 0 };
    this.#path = place.kind === "tcp" ? undefined : place.path;
    if (!isHeld && !this.#watch(this)) {
      for (const descriptor of this.descriptors) library.close(descriptor);
      throw cannotWait();
    }
    const store = socketStore();
    const registered = this.descriptors.map((descriptor, index) =>
      store?.opened(index === 0 ? this : this.#part(descriptor))
    );
    this.#unlist = () => registered.forEach((unlist) => unlist?.());
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
    this.#watch(watcher);
    // Connections from before the wait are not reported.
    this.poller.goOn(watcher);
  }

  start(): void {
    // On a shared path another process accepts, and passes on.
    const isPassed = !this.#isTcp && socketStore()?.sharing !== undefined;
    if (this.#state !== "held" || isPassed) return;
    this.#state = "open";
    if (this.#backlog !== undefined) {
      const failed = this.library.listen(this.descriptor, this.#backlog);
      if (failed !== 0) throw systemError(lastError(this.library));
      this.#backlog = undefined;
    }
    if (!this.#watch(this.#watcher)) throw cannotWait();
  }

  hold(): void {
    if (this.#state !== "open") return;
    this.#state = "held";
    this.#release();
  }

  handedOver(): void {
    if (this.#end("handed over")) this.#closeAll();
  }

  adopt(descriptor: number): void {
    const isIn = this.isOpen &&
      this.poller.add(descriptor, INTEREST, this.#watcher);
    if (!isIn) return void this.library.close(descriptor);
    this.#adopted.push(descriptor);
    this.descriptors.push(descriptor);
    // Connections from before the wait are not reported.
    this.poller.goOn(this.#watcher);
  }

  pass(descriptor: number): void {
    if (this.#state === "closed") return void this.library.close(descriptor);
    const stream = this.#streamOf(descriptor);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting === undefined) this.#passed.push(stream);
    else waiting.resolve(stream);
  }

  letGo(): void {
    for (const descriptor of this.#adopted.splice(0)) {
      this.descriptors.splice(this.descriptors.indexOf(descriptor), 1);
      unawaited("accept", this.poller.release(descriptor));
      void this.poller.close(descriptor);
    }
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
    this.letGo();
    this.#end("closed");
    this.#closePassed();
    this.#rejectWaiting();
    const keys = this.descriptors.map((descriptor) => store.put(descriptor));
    return keys[0];
  }

  /**
   * Waits for a connection. One call at a time.
   *
   * @throws {Deno.errors.BadResource} When it is closed.
   * @throws A system error with its `code`.
   */
  accept(): Promise<StreamDescriptor> {
    const passed = this.#passed.shift();
    if (passed !== undefined) return Promise.resolve(passed);
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

  /**
   * Also removes the path, as the platform does. Harmless a second time.
   *
   * @param isPatient See `AcceptEvents`.
   */
  close(isPatient = false): void {
    const { isHeld } = this;
    if (isPatient) this.#acceptQueued();
    else this.#closePassed();
    if (this.#end("closed")) {
      // The processes that accept there go on, and need the path.
      const store = socketStore();
      const isKept = isHeld || store?.areKept === true ||
        store?.sharing !== undefined;
      // First: once there is no listener, the path may be another process's.
      if (this.#path !== undefined && !isKept) removeSocket(this.#path);
      this.#closeAll();
    }
    this.#state = "closed";
    this.#rejectWaiting();
  }

  /** The kernel resets who comes between this and the close that follows. */
  #acceptQueued(): void {
    // Kept sockets keep their queues for the next process.
    if (this.#state !== "open" || socketStore()?.areKept === true) return;
    try {
      for (
        let stream = this.#acceptNow();
        stream !== undefined;
        stream = this.#acceptNow()
      ) this.#passed.push(stream);
    } catch {
      // Without a descriptor the kernel resets them.
    }
    const waiting = this.#waiting;
    const first = waiting && this.#passed.shift();
    if (first === undefined) return;
    this.#waiting = undefined;
    waiting!.resolve(first);
  }

  #closePassed(): void {
    for (const stream of this.#passed.splice(0)) stream.close();
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
    this.#release();
    return true;
  }

  /** @returns False: the poller cannot wait for all. */
  #watch(watcher: Pollable): boolean {
    return this.descriptors.every((descriptor) =>
      this.poller.add(descriptor, INTEREST, watcher)
    );
  }

  #release(): void {
    for (const descriptor of this.descriptors) {
      unawaited("accept", this.poller.release(descriptor));
    }
  }

  #closeAll(): void {
    for (const descriptor of this.descriptors) {
      void this.poller.close(descriptor);
    }
  }

  /** For the store alone: what is done with one is done with all. */
  #part(descriptor: number): ListeningSocket {
    const isHeld = () => this.isHeld;
    return {
      descriptor,
      get isHeld() {
        return isHeld();
      },
      start: () => this.start(),
      hold: () => this.hold(),
      handedOver: () => this.handedOver(),
    };
  }

  #rejectWaiting(): void {
    this.#waiting?.reject(closed());
    this.#waiting = undefined;
  }

  /** @returns `undefined`: there is none. */
  #acceptNow(): StreamDescriptor | undefined {
    for (const descriptor of this.descriptors) {
      const stream = this.#acceptOf(descriptor);
      if (stream !== undefined) return stream;
    }
    return undefined;
  }

  #acceptOf(listening: number): StreamDescriptor | undefined {
    for (;;) {
      const descriptor = acceptSocket(this.library, listening);
      if (descriptor >= 0) return this.#streamOf(descriptor, acceptedFrom());
      const number = lastError(this.library);
      if (number === Errno.EAGAIN) return undefined;
      if (number !== Errno.EINTR) throw systemError(number);
    }
  }

  #streamOf(
    descriptor: number,
    remoteAddress: string = "unix",
  ): StreamDescriptor {
    if (this.#acceptedInTurn++ === 0) setImmediate(this.#nextTurn);
    return new StreamDescriptor(this.library, this.poller, descriptor, {
      isTcp: this.#isTcp,
      mayRead: true,
      isPrompt: true,
      remoteAddress,
      ...this.#path !== undefined && { localAddress: this.#path },
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
