/**
 * A listening socket of the C library.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import { acceptedFrom, acceptSocket } from "../libc/sockets.ts";
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
import {
  type BindAddress,
  bindSocket,
  type Bound,
  isPassed,
  reportChoice,
  takeBound,
} from "./bound_socket.ts";
import { Handoff } from "./handoff.ts";
import { type ListeningSocket, socketStore } from "./socket_store.ts";

const INTEREST = Ready.READ | Ready.EDGE;

/** Connections accepted in a row; then others have their turn. */
const ACCEPTS_PER_TURN = 64;

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

/** The same on a path. @param mode Mode of its file, whatever the umask. */
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
  const taken = takeBound(library, place, backlog);
  if (taken !== undefined) return new PolledListener(library, poller, taken);
  const bound = bindSocket(library, name, place, backlog);
  const listener = new PolledListener(library, poller, bound);
  reportChoice(place, listener.address);
  return listener;
}

/**
 * `start` makes it accept; a backlog: it does not listen yet, and will listen
 * with this.
 */
type State =
  | { readonly kind: "held"; readonly backlog?: number | undefined }
  | { readonly kind: "open" | "handed over" | "closed" };

export class PolledListener implements Pollable, ListeningSocket {
  /** The bound address; port 0 for a path. */
  readonly address: DatagramAddress;
  readonly descriptor: number;
  /** All, for a watcher that accepts by itself when the poller notifies it. */
  readonly descriptors: number[];
  /** Those of `descriptors` that are another process's. */
  #adopted: number[] = [];
  readonly #place: BindAddress;
  /** Accepted by another process for this one, or just before it was closed. */
  readonly #passed = new Handoff<StreamDescriptor>();
  #acceptedInTurn = 0;
  #state: State;
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
    { address, descriptors, place, isHeld, backlog }: Bound,
  ) {
    this.address = address;
    this.descriptor = descriptors[0]!;
    this.descriptors = [...descriptors];
    this.#place = place;
    this.#state = isHeld ? { kind: "held", backlog } : { kind: "open" };
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
    return this.#state.kind === "held";
  }

  /** Whether it is for this process to accept. */
  get isOpen(): boolean {
    return this.#state.kind === "open";
  }

  /** Lets `watcher` accept from now on, with the descriptor. */
  watchedBy(watcher: Pollable): void {
    this.#watcher = watcher;
    if (!this.isOpen) return;
    this.#watch(watcher);
    // Connections from before the wait are not reported.
    this.poller.goOn(watcher);
  }

  start(): void {
    // On a shared path another process accepts, and passes connections on.
    if (this.#state.kind !== "held" || isPassed(this.#place)) return;
    const { backlog } = this.#state;
    this.#state = { kind: "open" };
    if (backlog !== undefined) {
      const failed = this.library.listen(this.descriptor, backlog);
      if (failed !== 0) throw systemError(lastError(this.library));
    }
    if (!this.#watch(this.#watcher)) throw cannotWait();
  }

  hold(): void {
    if (!this.isOpen) return;
    this.#state = { kind: "held" };
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
    if (this.#state.kind === "closed") {
      return void this.library.close(descriptor);
    }
    this.#passed.put(this.#streamOf(descriptor));
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
    if (store === undefined || !this.isOpen) {
      this.close();
      return undefined;
    }
    this.letGo();
    this.#end("closed");
    this.#closePassed();
    this.#passed.fail(closed());
    const keys = this.descriptors.map((descriptor) => store.put(descriptor));
    return keys[0];
  }

  /**
   * Waits for a connection. One call at a time.
   *
   * @param hasTried `acceptNow` has just found none.
   * @throws {Deno.errors.BadResource} When it is closed.
   * @throws A system error with its `code`.
   */
  accept(hasTried = false): Promise<StreamDescriptor> {
    const passed = this.#passed.take();
    if (passed !== undefined) return Promise.resolve(passed);
    if (this.#state.kind === "closed") return Promise.reject(closed());
    try {
      const stream = hasTried ? undefined : this.acceptNow();
      if (stream !== undefined) return Promise.resolve(stream);
    } catch (error) {
      return Promise.reject(error);
    }
    return this.#passed.next();
  }

  /**
   * Like {@linkcode PolledListener.accept}, for a connection that is there
   * already.
   *
   * @returns `undefined`: there is none, or another process has its turn first.
   * @throws A system error with its `code`.
   */
  acceptNow(): StreamDescriptor | undefined {
    return this.isOpen && this.#acceptedInTurn < ACCEPTS_PER_TURN
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
    const place = this.#place;
    if (isPatient) this.#acceptQueued();
    else this.#closePassed();
    if (this.#end("closed")) {
      // The processes that accept there go on, and need the path.
      const store = socketStore();
      const isKept = isHeld || store?.areKept === true ||
        store?.sharing !== undefined;
      // First: once there is no listener, the path may be another process's.
      if (place.kind === "unix" && !isKept) removeSocket(place.path);
      this.#closeAll();
    }
    this.#state = { kind: "closed" };
    this.#passed.fail(closed());
  }

  /**
   * The kernel resets clients that come between this and the close after it.
   */
  #acceptQueued(): void {
    // Kept sockets keep their queues for the next process.
    if (!this.isOpen || socketStore()?.areKept === true) return;
    try {
      for (
        let stream = this.#acceptNow();
        stream !== undefined;
        stream = this.#acceptNow()
      ) this.#passed.put(stream);
    } catch {
      // Without a descriptor the kernel resets them.
    }
  }

  #closePassed(): void {
    for (const stream of this.#passed.takeAll()) stream.close();
  }

  onReady(): void {
    if (!this.#passed.isAwaited || !this.isOpen) return;
    try {
      const stream = this.#acceptNow();
      if (stream !== undefined) this.#passed.put(stream);
    } catch (error) {
      this.#passed.fail(error);
    }
  }

  /** That connection is lost; the next one is not. */
  onFault(): void {}

  /** @returns Whether the descriptor was this listener's until now. */
  #end(kind: "handed over" | "closed"): boolean {
    if (!this.isHeld && !this.isOpen) return false;
    this.#state = { kind };
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

  /** For the store alone: an action on one socket is done on all of them. */
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
    const place = this.#place;
    return new StreamDescriptor(this.library, this.poller, descriptor, {
      isTcp: place.kind === "tcp",
      mayRead: true,
      isPrompt: true,
      remoteAddress,
      ...place.kind === "unix" && { localAddress: place.path },
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
