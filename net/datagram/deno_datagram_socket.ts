/**
 * A UDP socket of `Deno.listenDatagram`, read and written many datagrams at
 * once where there is a C library.
 *
 * @module
 */

import {
  INTERNAL_ERROR,
  unawaited,
} from "../../platform/errors/internal_errors.ts";
import { setImmediate } from "node:timers";
import { giveBuffer, takeBuffer } from "./datagram_buffers.ts";
import {
  DatagramDescriptor,
  DATAGRAMS_PER_READ,
  KERNEL_BUFFER_BYTES,
  openWithDescriptor,
  READ_FAILURES_MAX,
} from "./datagram_descriptor.ts";
import { DatagramSender } from "./datagram_outbox.ts";
import type {
  DatagramEvents,
  DatagramSocket,
  DatagramSocketOptions,
} from "./datagram_socket.ts";
import { lastError } from "../libc/libc.ts";
import { socketStore } from "../bind/socket_store.ts";
import { deliverDatagram } from "./deliver_datagram.ts";
import type { DatagramAddress } from "../libc/socket_address.ts";
import { Errno, systemError } from "../libc/system_error.ts";
import { codeOf } from "../../platform/errors/error_code.ts";
import { type Pollable, sharedPoller } from "../poll/poller.ts";

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
const WAITING_BYTES_MAX = 4 * 1024 * 1024;
const WAITING_COSTS_BYTES = 512;

/** The part of `Deno.DatagramConn` that is used. */
interface PlatformSocket {
  readonly addr: DatagramAddress;
  receive(into: Uint8Array): Promise<[Uint8Array, DatagramAddress]>;
  send(bytes: Uint8Array, to: DatagramAddress & Udp): Promise<number>;
  close(): void;
}

type Udp = { readonly transport: "udp" };
type Listen = (options: DatagramAddress & Udp) => PlatformSocket;

/** `Deno.listenDatagram`, which is there only under `--unstable-net`. */
export function platformListen(): Listen | undefined {
  return (Deno as unknown as { listenDatagram?: Listen }).listenDatagram;
}

let connected = 0;

/** How many are open that have one peer each; none without the C library. */
export function connectedSockets(): number {
  return connected;
}

export class DenoDatagramSocket implements DatagramSocket, Pollable {
  readonly #address: DatagramAddress;
  #sender: DatagramSender | undefined;
  #events: DatagramEvents | undefined;
  #waitingBytes = 0;
  #isClosed = false;
  /** Another process reads; what is sent leaves by this second descriptor. */
  #sendsBy: DatagramDescriptor | undefined;
  #unlist = () => {};
  /** While it reads. */
  #reading: Promise<void> | undefined;
  #released: Promise<unknown> | undefined;

  private constructor(
    private readonly socket: PlatformSocket,
    private readonly descriptor: DatagramDescriptor | undefined,
    /** Whether it is for one peer only. */
    private readonly isConnected = false,
  ) {
    this.#address = socket.addr;
    this.#sender = descriptor &&
      new DatagramSender(descriptor, (bytes, to) => this.#retry(bytes, to));
    // Only errors are waited for there: the platform reads.
    if (isConnected) sharedPoller()?.add(descriptor!.number, 0, this);
    if (descriptor !== undefined && !isConnected) this.#enlist(descriptor);
  }

  /** @param options `isPlain`: to do without the C library. */
  // deno-lint-ignore require-await -- what it throws is to be a rejection
  static async open(
    { hostname, port }: DatagramAddress,
    listen: Listen,
    { isPlain = false, peer, kernelBytes }:
      & DatagramSocketOptions
      & { readonly isPlain?: boolean } = {},
  ): Promise<DatagramSocket> {
    const at = hostname === "" ? "0.0.0.0" : hostname;
    const bind = () => listen({ transport: "udp", hostname: at, port });
    if (isPlain) return new DenoDatagramSocket(bind(), undefined);
    const { socket, descriptor } = openWithDescriptor(bind, kernelBytes);
    const isConnected = peer !== undefined && descriptor !== undefined;
    if (isConnected && !descriptor.connect(peer)) {
      socket.close();
      // The platform does not report the error of connect(2).
      throw Object.assign(new Error("no route to host"), {
        code: "EHOSTUNREACH",
      });
    }
    if (isConnected) connected++;
    return new DenoDatagramSocket(socket, descriptor, isConnected);
  }

  get address(): DatagramAddress {
    return this.#address;
  }

  listen(events: DatagramEvents): void {
    this.#events = events;
    this.#reading = this.#receive(events);
  }

  send(bytes: Uint8Array, to: DatagramAddress): void {
    if (this.#isClosed) return;
    // Once in a turn: a datagram that still waits here cannot be refused.
    if (this.#sender?.isIdle && this.#hasFailed()) return;
    if (this.#sender === undefined) this.#sendLater(bytes, to);
    else this.#sender.send(bytes, to);
  }

  close(closed?: () => void): void {
    if (!this.#isClosed) {
      this.#unlist();
      this.#sender?.flush();
      if (this.isConnected) {
        connected--;
        this.#released = sharedPoller()?.release(this.descriptor!.number);
      }
      if (this.#sendsBy === undefined) this.socket.close();
      else this.#sendsBy.library.close(this.#sendsBy.number);
    }
    // From here on the descriptor may belong to another socket.
    this.#isClosed = true;
    if (closed === undefined) return;
    // The platform keeps the port for as long as a read of it is under way.
    const gone = Promise.all([this.#reading, this.#released]).then(closed);
    unawaited("datagram", gone, closed);
  }

  leave(): string | undefined {
    const { library, number } = this.descriptor ?? {};
    const store = socketStore();
    const canStay = library !== undefined && store !== undefined &&
      !this.#isClosed && this.#sendsBy === undefined && !this.isConnected;
    const second = canStay ? library.dup(number!) : -1;
    this.close();
    return second < 0 ? undefined : store!.put(second);
  }

  #enlist(descriptor: DatagramDescriptor): void {
    const store = socketStore();
    if (store === undefined) return;
    this.#unlist = store.opened({
      descriptor: descriptor.number,
      isHeld: false,
      start() {},
      handedOver: () => this.#stopReading(descriptor),
    });
  }

  /** The platform can end a read only by closing its descriptor. */
  #stopReading({ library, number }: DatagramDescriptor): void {
    const second = library.dup(number);
    if (second < 0) return this.close();
    this.#sender?.flush();
    this.#sendsBy = new DatagramDescriptor(
      library,
      second,
      KERNEL_BUFFER_BYTES,
    );
    // What the kernel has no room for is lost, as anywhere on the way.
    this.#sender = new DatagramSender(this.#sendsBy, () => {});
    this.socket.close();
  }

  /** There is an error, as nothing else is waited for there. */
  onReady(): void {
    if (!this.#isClosed) this.#hasFailed();
  }

  onFault(): void {
    this.#fail(new Error(INTERNAL_ERROR));
  }

  /** Whether an earlier datagram was refused; reported once. */
  #hasFailed(): boolean {
    if (!this.isConnected) return false;
    const error = this.descriptor!.takeError();
    if (error === 0) return false;
    this.#fail(systemError(error));
    return true;
  }

  /** The kernel did not take it. */
  #retry(bytes: Uint8Array, to: DatagramAddress): void {
    const { library } = this.descriptor!;
    const isRefused = this.isConnected &&
      lastError(library) === Errno.ECONNREFUSED;
    if (isRefused) this.#fail(systemError(Errno.ECONNREFUSED));
    else this.#sendLater(bytes, to);
  }

  /** The platform waits for room, and knows what cannot be sent at all. */
  #sendLater(bytes: Uint8Array, { hostname, port }: DatagramAddress): void {
    const waiting = bytes.length + WAITING_COSTS_BYTES;
    if (this.#waitingBytes + waiting > WAITING_BYTES_MAX) return;
    this.#waitingBytes += waiting;
    const over = () => {
      this.#waitingBytes -= waiting;
    };
    // Copied, because the platform keeps it until the system has taken it.
    const copy = bytes.slice();
    this.socket.send(copy, { transport: "udp", hostname, port })
      .then(over, (error) => {
        over();
        const isTooLong = codeOf(error) === "EMSGSIZE";
        if (this.isConnected && !isTooLong) this.#fail(error);
      });
  }

  #fail(error: unknown): void {
    if (!this.#isClosed) this.#events?.onError(error as Error);
  }

  get #isReading(): boolean {
    return !this.#isClosed && this.#sendsBy === undefined;
  }

  async #receive(events: DatagramEvents): Promise<void> {
    const buffer = takeBuffer();
    try {
      await this.#receiveInto(buffer, events);
    } finally {
      giveBuffer(buffer);
    }
  }

  async #receiveInto(
    buffer: Uint8Array,
    events: DatagramEvents,
  ): Promise<void> {
    const failuresMax = this.isConnected ? 1 : READ_FAILURES_MAX;
    let inTurn = 0;
    for (let failures = 0; this.#isReading;) {
      let received: [Uint8Array, DatagramAddress];
      try {
        received = await this.socket.receive(buffer);
      } catch (error) {
        if (!this.#isReading) return;
        if (++failures < failuresMax) continue;
        return this.#fail(error);
      }
      failures = 0;
      const [bytes, { hostname, port }] = received;
      if (this.#isClosed) return;
      deliverDatagram(events, bytes, hostname, port);
      inTurn += 1 + this.#readOn(events);
      if (inTurn < DATAGRAMS_PER_TURN) continue;
      inTurn = 0;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }

  /** Reads what came with the first one. */
  #readOn(events: DatagramEvents): number {
    let total = 0;
    while (this.descriptor !== undefined && total < DATAGRAMS_PER_TURN) {
      // The receiver of a datagram may close the socket.
      if (!this.#isReading) break;
      const count = this.descriptor.read((bytes, hostname, port) => {
        deliverDatagram(events, bytes, hostname, port);
        return this.#isReading;
      });
      total += Math.max(0, count);
      if (count < DATAGRAMS_PER_READ) break;
    }
    return total;
  }
}
