/**
 * A UDP socket of the C library alone: beside the kernel's part it costs a few
 * objects, and one poller waits for thousands of them. Most are connected to
 * one peer. Sockets from another process or another listener, and sockets on
 * all addresses of this machine, are open to all senders: their answers leave
 * from the address that the datagram came to.
 *
 * @module
 */

import { bindShared } from "../bind/bound_socket.ts";
import {
  INTERNAL_ERROR,
  unawaited,
} from "../../platform/errors/internal_errors.ts";
import {
  DatagramDescriptor,
  KERNEL_BUFFER_BYTES,
  READ_FAILURES_MAX,
  SESSION_BUFFER_BYTES,
} from "./datagram_descriptor.ts";
import { DatagramSender } from "./datagram_outbox.ts";
import { deliverDatagram } from "./deliver_datagram.ts";
import type { DatagramEvents, DatagramSocket } from "./datagram_socket.ts";
import { lastError, type LibC } from "../libc/libc.ts";
import {
  type Pollable,
  type Poller,
  Ready,
  sharedPoller,
} from "../poll/poller.ts";
import { boundAddress, openSocket, SOCK_DGRAM } from "../libc/sockets.ts";
import {
  AF_INET,
  AF_INET6,
  type DatagramAddress,
  encodeSocketAddress,
  isWildcard,
} from "../libc/socket_address.ts";
import { cannotWait, Errno, systemError } from "../libc/system_error.ts";
import {
  type ListeningSocket,
  socketStore,
  type WaitingSocket,
} from "../bind/socket_store.ts";

const EINVAL = 22;
const EADDRNOTAVAIL = 99;
const EHOSTUNREACH = 113;

/** What connect(2) says when no port is free, or a link's address has no zone. */
const CONNECT_ERRORS: ReadonlyMap<number, number> = new Map([
  [Errno.EAGAIN, EADDRNOTAVAIL],
  [EINVAL, EHOSTUNREACH],
]);

export class PolledDatagramSocket
  implements DatagramSocket, Pollable, ListeningSocket {
  readonly #descriptor: DatagramDescriptor;
  readonly #sender: DatagramSender;
  #events: DatagramEvents | undefined;
  /** `handed over`: it sends, and another process reads. */
  #state: "held" | "open" | "handed over" | "closed" = "open";
  #unlist = () => {};
  /** It is open to all senders, and one sender cannot harm the others. */
  #isServer = false;
  #reportsLocal = false;
  /** Reads that failed one after the other. */
  #failures = 0;

  private constructor(
    descriptor: DatagramDescriptor,
    private readonly poller: Poller,
  ) {
    this.#descriptor = descriptor;
    // What the kernel has no room for is lost, as anywhere on the way; but an
    // error that the send returned is not reported again.
    this.#sender = new DatagramSender(descriptor, () => {
      const error = lastError(descriptor.library);
      const isRefused = error === Errno.ECONNREFUSED && !this.#isServer;
      if (isRefused) this.#fail(error);
    });
  }

  /** @throws A system error, such as one with code `EMFILE`. */
  static open(
    library: LibC,
    peer: DatagramAddress,
    kernelBytes: number = SESSION_BUFFER_BYTES,
  ): PolledDatagramSocket {
    const number = create(library, peer);
    const descriptor = new DatagramDescriptor(library, number, kernelBytes);
    // There is one wherever there is a C library.
    const poller = sharedPoller()!;
    const socket = new PolledDatagramSocket(descriptor, poller);
    const isUp = descriptor.connect(peer) &&
      poller.add(number, Ready.READ, socket);
    if (isUp) return socket;
    const error = lastError(library);
    library.close(number);
    throw systemError(CONNECT_ERRORS.get(error) ?? error);
  }

  /**
   * Open to all senders, bound here.
   *
   * @throws A system error, such as one with code `EADDRINUSE`.
   */
  static bind(
    library: LibC,
    { hostname, port }: DatagramAddress,
  ): PolledDatagramSocket {
    const at = { hostname: hostname === "" ? "0.0.0.0" : hostname, port };
    const name = encodeSocketAddress(at);
    if (name === undefined) throw systemError(EINVAL);
    const descriptor = create(library, at);
    if (!bindShared(library, descriptor, name, port)) {
      const error = lastError(library);
      library.close(descriptor);
      throw systemError(error);
    }
    const sharing = socketStore()?.sharing;
    const waiting = { descriptor, isHeld: sharing?.isHeld === true };
    const socket = PolledDatagramSocket.listenWith(library, waiting);
    if (port === 0) sharing?.chose("udp", hostname, socket.address.port);
    return socket;
  }

  /**
   * Open to all senders, with a socket that is bound already.
   *
   * @throws {Error} The poller cannot wait for it; the descriptor is closed
   *   then.
   */
  static listenWith(
    library: LibC,
    { descriptor: number, isHeld }: WaitingSocket,
  ): PolledDatagramSocket {
    const descriptor = new DatagramDescriptor(
      library,
      number,
      KERNEL_BUFFER_BYTES,
    );
    const poller = sharedPoller()!;
    const socket = new PolledDatagramSocket(descriptor, poller);
    const { hostname } = socket.address;
    socket.#isServer = true;
    socket.#reportsLocal = isWildcard(hostname) &&
      descriptor.wantLocal(hostname.includes(":"));
    if (isHeld) socket.#state = "held";
    else if (!poller.add(number, Ready.READ, socket)) {
      library.close(number);
      throw cannotWait();
    }
    socket.#unlist = socketStore()?.opened(socket) ?? (() => {});
    return socket;
  }

  get address(): DatagramAddress {
    const { library, number } = this.#descriptor;
    return boundAddress(library, number) ?? { hostname: "", port: 0 };
  }

  get reportsLocal(): boolean {
    return this.#reportsLocal;
  }

  get descriptor(): number {
    return this.#descriptor.number;
  }

  get isHeld(): boolean {
    return this.#state === "held";
  }

  start(): void {
    if (this.#state !== "held") return;
    this.#state = "open";
    const { number } = this.#descriptor;
    if (!this.poller.add(number, Ready.READ, this)) throw cannotWait();
  }

  handedOver(): void {
    if (this.#state === "closed") return;
    this.#state = "handed over";
    this.#unlist();
    this.poller.release(this.#descriptor.number);
  }

  leave(): string | undefined {
    const store = socketStore();
    if (store === undefined || this.#state !== "open") {
      this.close();
      return undefined;
    }
    this.#sender.flush();
    this.#state = "closed";
    this.#unlist();
    this.poller.release(this.#descriptor.number);
    return store.put(this.#descriptor.number);
  }

  listen(events: DatagramEvents): void {
    this.#events = events;
  }

  send(bytes: Uint8Array, to: DatagramAddress): void {
    if (this.#state === "closed") return;
    // Once in a turn: a datagram that still waits here cannot be refused.
    const mayBeRefused = !this.#isServer && this.#sender.isIdle;
    if (mayBeRefused && this.#hasFailed()) return;
    this.#sender.send(bytes, to);
  }

  close(closed?: () => void): void {
    if (this.#state === "closed") {
      if (closed !== undefined) queueMicrotask(closed);
      return;
    }
    this.#sender.flush();
    this.#state = "closed";
    this.#unlist();
    // Another process that has the socket keeps it open, and the kernel would
    // go on reporting.
    this.poller.release(this.#descriptor.number);
    const gone = this.poller.close(this.#descriptor.number);
    if (closed !== undefined) unawaited("datagram", gone.then(closed));
  }

  onReady(): void {
    const events = this.#events;
    // What comes before the owner listens stays in the kernel.
    if (events === undefined) return;
    if (!this.#isServer && this.#hasFailed()) return;
    // Datagrams that it leaves are found by the next look: others have their
    // turn first.
    const count = this.#descriptor.read((bytes, host, port, local) => {
      deliverDatagram(events, bytes, host, port, local);
      return this.#state === "open";
    });
    if (count >= 0) this.#failures = 0;
    else this.#readFailed(lastError(this.#descriptor.library));
  }

  /** A server goes on after an error that one sender has caused. */
  #readFailed(error: number): void {
    if (this.#isServer && ++this.#failures < READ_FAILURES_MAX) return;
    this.#fail(error);
  }

  onFault(): void {
    // A server's error is not about one sender.
    if (!this.#isServer) this.#events?.onError(new Error(INTERNAL_ERROR));
  }

  /** The kernel reports an error to the first call only. */
  #hasFailed(): boolean {
    const error = this.#descriptor.takeError();
    if (error === 0) return false;
    this.#fail(error);
    return true;
  }

  #fail(error: number): void {
    if (this.#state !== "closed") this.#events?.onError(systemError(error));
  }
}

/** @throws A system error. */
function create(library: LibC, { hostname }: DatagramAddress): number {
  const family = hostname.includes(":") ? AF_INET6 : AF_INET;
  return openSocket(library, family, SOCK_DGRAM);
}
