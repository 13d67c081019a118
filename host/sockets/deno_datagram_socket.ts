/**
 * A UDP socket of `Deno.listenDatagram`, read and written many datagrams at
 * once where the C library can be asked.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import {
  type DatagramDescriptor,
  DATAGRAMS_PER_READ,
  openWithDescriptor,
} from "./datagram_descriptor.ts";
import { DatagramSender } from "./datagram_outbox.ts";
import type { DatagramEvents, DatagramSocket } from "./datagram_socket.ts";
import type { DatagramAddress } from "./socket_address.ts";

/** The longest datagram there is, rounded up (RFC 768). */
const DATAGRAM_OCTETS_MAX = 65_536;

/**
 * Reads that may fail one after the other. Some systems report there that an
 * earlier datagram was refused, and the socket goes on; a dead one fails always.
 */
const READ_FAILURES_MAX = 16;

/**
 * Datagrams that are read before everybody else has a turn: without it a flood
 * of them would hold up all other connections.
 */
export const DATAGRAMS_PER_TURN: number = 4 * DATAGRAMS_PER_READ;

/**
 * What may wait in the platform for room in the kernel, which holds thousands
 * of datagrams itself: more of them are not late but too many. Each counts with
 * its length and what waiting costs; far more than one turn can bring.
 */
const WAITING_OCTETS_MAX = 4 * 1024 * 1024;
const WAITING_COSTS_OCTETS = 512;

/** The part of `Deno.DatagramConn` that is used. */
interface PlatformSocket {
  readonly addr: DatagramAddress;
  receive(into: Uint8Array): Promise<[Uint8Array, DatagramAddress]>;
  send(octets: Uint8Array, to: DatagramAddress & Udp): Promise<number>;
  close(): void;
}

type Udp = { readonly transport: "udp" };
type Listen = (options: DatagramAddress & Udp) => PlatformSocket;

/** `Deno.listenDatagram`, which is there only under `--unstable-net`. */
export function platformListen(): Listen | undefined {
  return (Deno as unknown as { listenDatagram?: Listen }).listenDatagram;
}

/** See the module description. */
export class DenoDatagramSocket implements DatagramSocket {
  readonly #socket: PlatformSocket;
  readonly #descriptor: DatagramDescriptor | undefined;
  readonly #sender: DatagramSender | undefined;
  #waitingOctets = 0;
  #isClosed = false;

  private constructor(
    socket: PlatformSocket,
    descriptor: DatagramDescriptor | undefined,
  ) {
    this.#socket = socket;
    this.#descriptor = descriptor;
    this.#sender = descriptor &&
      new DatagramSender(
        descriptor,
        (octets, to) => this.#sendLater(octets, to),
      );
  }

  /** @param isPlain Whether to do without the C library. */
  // deno-lint-ignore require-await -- what it throws is to be a rejection
  static async open(
    { hostname, port }: DatagramAddress,
    listen: Listen,
    isPlain = false,
  ): Promise<DatagramSocket> {
    const at = hostname === "" ? "0.0.0.0" : hostname;
    const bind = () => listen({ transport: "udp", hostname: at, port });
    if (isPlain) return new DenoDatagramSocket(bind(), undefined);
    const { socket, descriptor } = openWithDescriptor(bind);
    return new DenoDatagramSocket(socket, descriptor);
  }

  get address(): DatagramAddress {
    return this.#socket.addr;
  }

  listen(events: DatagramEvents): void {
    void this.#receive(events);
  }

  send(octets: Uint8Array, to: DatagramAddress): void {
    if (this.#isClosed) return;
    if (this.#sender === undefined) this.#sendLater(octets, to);
    else this.#sender.send(octets, to);
  }

  close(closed?: () => void): void {
    if (!this.#isClosed) {
      this.#sender?.flush();
      this.#socket.close();
    }
    // From here on the descriptor may be somebody else's.
    this.#isClosed = true;
    if (closed !== undefined) queueMicrotask(closed);
  }

  /** The platform waits for room, and knows what cannot be sent at all. */
  #sendLater(octets: Uint8Array, { hostname, port }: DatagramAddress): void {
    const waiting = octets.length + WAITING_COSTS_OCTETS;
    if (this.#waitingOctets + waiting > WAITING_OCTETS_MAX) return;
    this.#waitingOctets += waiting;
    const over = () => {
      this.#waitingOctets -= waiting;
    };
    // Copied, because the platform keeps it until the system has taken it.
    const copy = octets.slice();
    this.#socket.send(copy, { transport: "udp", hostname, port })
      .then(over, over);
  }

  async #receive(events: DatagramEvents): Promise<void> {
    // Its pages are the system's until a datagram is long enough to need them.
    const buffer = new Uint8Array(DATAGRAM_OCTETS_MAX);
    let inTurn = 0;
    for (let failures = 0; !this.#isClosed;) {
      let received: [Uint8Array, DatagramAddress];
      try {
        received = await this.#socket.receive(buffer);
      } catch (error) {
        if (this.#isClosed) return;
        if (++failures < READ_FAILURES_MAX) continue;
        return events.onError(error as Error);
      }
      failures = 0;
      const [octets, { hostname, port }] = received;
      if (this.#isClosed) return;
      events.onDatagram(octets, hostname, port);
      inTurn += 1 + this.#readOn(events);
      if (inTurn < DATAGRAMS_PER_TURN) continue;
      inTurn = 0;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }

  /** Reads what came with the first one. */
  #readOn({ onDatagram }: DatagramEvents): number {
    let total = 0;
    while (this.#descriptor !== undefined && total < DATAGRAMS_PER_TURN) {
      // Whoever hears a datagram may close the socket.
      if (this.#isClosed) break;
      const count = this.#descriptor.read((octets, hostname, port) => {
        onDatagram(octets, hostname, port);
        return !this.#isClosed;
      });
      total += count;
      if (count < DATAGRAMS_PER_READ) break;
    }
    return total;
  }
}
