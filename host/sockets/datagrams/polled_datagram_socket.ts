/**
 * A UDP socket for one peer, of the C library alone: what it costs beside the
 * kernel's part is a few objects. Thousands of them are waited for together.
 *
 * @module
 */

import { INTERNAL_ERROR } from "../../process/internal_errors.ts";
import {
  DatagramDescriptor,
  SESSION_BUFFER_OCTETS,
} from "./datagram_descriptor.ts";
import { DatagramSender } from "./datagram_outbox.ts";
import type { DatagramEvents, DatagramSocket } from "./datagram_socket.ts";
import { lastError, type LibC, nameOf } from "../libc/libc.ts";
import {
  type Polled,
  type Poller,
  Ready,
  sharedPoller,
} from "../polled/poller.ts";
import type { DatagramAddress } from "../libc/socket_address.ts";
import { Errno, systemError } from "../libc/system_error.ts";

const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_DGRAM = 2;
const SOCK_NONBLOCK = 0x800;
const SOCK_CLOEXEC = 0x80000;

/** What connect(2) says when no port is free. */
const NO_PORT = Errno.EAGAIN;
const EADDRNOTAVAIL = 99;

/** What a send is told of those before it (ICMP). */
const REFUSALS: ReadonlySet<number> = new Set([Errno.ECONNREFUSED]);

/** See the module description. */
export class PolledDatagramSocket implements DatagramSocket, Polled {
  readonly #descriptor: DatagramDescriptor;
  readonly #sender: DatagramSender;
  readonly #poller: Poller;
  #events: DatagramEvents | undefined;
  #isClosed = false;

  private constructor(descriptor: DatagramDescriptor, poller: Poller) {
    this.#descriptor = descriptor;
    this.#poller = poller;
    // What the kernel has no room for is lost, as anywhere on the way; but an
    // error that the send was told of is told nobody else.
    this.#sender = new DatagramSender(descriptor, () => {
      const error = lastError(descriptor.library);
      if (REFUSALS.has(error)) this.#fail(error);
    });
  }

  /** @throws A system error, such as one with code `EMFILE`. */
  static open(
    library: LibC,
    peer: DatagramAddress,
    kernelOctets: number = SESSION_BUFFER_OCTETS,
  ): PolledDatagramSocket {
    const family = peer.hostname.includes(":") ? AF_INET6 : AF_INET;
    const number = library.socket(
      family,
      SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
      0,
    );
    if (number < 0) throw systemError(lastError(library));
    const descriptor = new DatagramDescriptor(library, number, kernelOctets);
    // There is one wherever there is a C library.
    const poller = sharedPoller()!;
    const socket = new PolledDatagramSocket(descriptor, poller);
    const isUp = descriptor.connect(peer) &&
      poller.add(number, Ready.READ, socket);
    if (isUp) return socket;
    const error = lastError(library);
    library.close(number);
    throw systemError(error === NO_PORT ? EADDRNOTAVAIL : error);
  }

  get address(): DatagramAddress {
    const { library, number } = this.#descriptor;
    const name = nameOf(library.getsockname, number);
    return { hostname: name?.address ?? "", port: name?.port ?? 0 };
  }

  listen(events: DatagramEvents): void {
    this.#events = events;
  }

  send(octets: Uint8Array, to: DatagramAddress): void {
    if (this.#isClosed) return;
    // Once in a turn: of what waits here nobody can have refused anything.
    if (this.#sender.isIdle && this.#hasFailed()) return;
    this.#sender.send(octets, to);
  }

  close(closed?: () => void): void {
    if (this.#isClosed) {
      if (closed !== undefined) queueMicrotask(closed);
      return;
    }
    this.#sender.flush();
    this.#isClosed = true;
    const gone = this.#poller.close(this.#descriptor.number);
    if (closed !== undefined) void gone.then(closed);
  }

  onReady(): void {
    const events = this.#events;
    // What comes before anybody listens stays in the kernel.
    if (events === undefined || this.#hasFailed()) return;
    // What it leaves there, the next look finds: others have their turn first.
    this.#descriptor.read((octets, host, port) => {
      events.onDatagram(octets, host, port);
      return !this.#isClosed;
    });
  }

  onFault(): void {
    this.#events?.onError(new Error(INTERNAL_ERROR));
  }

  /** The first to ask is told of an error, and nobody after that. */
  #hasFailed(): boolean {
    const error = this.#descriptor.takeError();
    if (error === 0) return false;
    this.#fail(error);
    return true;
  }

  #fail(error: number): void {
    if (!this.#isClosed) this.#events?.onError(systemError(error));
  }
}
