/**
 * A UDP socket for one peer, of the C library alone: what it costs beside the
 * kernel's part is a few objects. Thousands of them are waited for together.
 *
 * @module
 */

import {
  DatagramDescriptor,
  SESSION_BUFFER_OCTETS,
} from "./datagram_descriptor.ts";
import { DatagramSender } from "./datagram_outbox.ts";
import type { DatagramEvents, DatagramSocket } from "./datagram_socket.ts";
import { lastError, type LibC, nameOf } from "./libc.ts";
import { type Polled, Poller } from "./poller.ts";
import type { DatagramAddress } from "./socket_address.ts";

const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_DGRAM = 2;
const SOCK_NONBLOCK = 0x800;
const SOCK_CLOEXEC = 0x80000;

/** By Linux's numbers: the codes of those who have a name of their own here. */
const CODES: Readonly<Record<number, string>> = {
  11: "EADDRNOTAVAIL", // EAGAIN: no port is free (connect(2)).
  23: "ENFILE",
  24: "EMFILE",
  101: "ENETUNREACH",
  111: "ECONNREFUSED",
  113: "EHOSTUNREACH",
};

/** And what people call them. */
const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  EHOSTUNREACH: "no route to host",
  ENETUNREACH: "network is unreachable",
};

let poller: Poller | undefined;

/** See the module description. */
export class PolledDatagramSocket implements DatagramSocket, Polled {
  readonly #descriptor: DatagramDescriptor;
  readonly #sender: DatagramSender;
  #events: DatagramEvents | undefined;
  #isClosed = false;

  private constructor(descriptor: DatagramDescriptor) {
    this.#descriptor = descriptor;
    // What the kernel has no room for is lost, as anywhere on the way.
    this.#sender = new DatagramSender(descriptor, () => {});
  }

  /** @throws A system error, such as one with code `EMFILE`. */
  static open(library: LibC, peer: DatagramAddress): PolledDatagramSocket {
    const family = peer.hostname.includes(":") ? AF_INET6 : AF_INET;
    const number = library.socket(
      family,
      SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
      0,
    );
    if (number < 0) throw systemError(lastError(library));
    const descriptor = new DatagramDescriptor(
      library,
      number,
      SESSION_BUFFER_OCTETS,
    );
    const socket = new PolledDatagramSocket(descriptor);
    poller ??= new Poller(library);
    const isUp = descriptor.connect(peer) && poller.add(number, socket);
    if (isUp) return socket;
    const error = lastError(library);
    library.close(number);
    throw systemError(error);
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
    if (this.#isClosed || this.#hasFailed()) return;
    this.#sender.send(octets, to);
  }

  close(closed?: () => void): void {
    if (this.#isClosed) {
      if (closed !== undefined) queueMicrotask(closed);
      return;
    }
    this.#sender.flush();
    this.#isClosed = true;
    const gone = poller!.close(this.#descriptor.number);
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

  /** The first to ask is told of an error, and nobody after that. */
  #hasFailed(): boolean {
    const error = this.#descriptor.takeError();
    if (error === 0) return false;
    this.#events?.onError(systemError(error));
    return true;
  }
}

function systemError(number: number): Error {
  const code = CODES[number] ?? `E${number}`;
  return Object.assign(new Error(WORDS[code] ?? `system error ${number}`), {
    code,
  });
}
