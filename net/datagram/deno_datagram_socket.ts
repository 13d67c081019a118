/**
 * A UDP socket of `Deno.listenDatagram`, where there is no C library: it reads
 * one datagram at a time, and refusals (ICMP) are not reported.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import { setImmediate } from "node:timers";
import type { DatagramEvents, DatagramSocket } from "./datagram_socket.ts";
import { READ_FAILURES_MAX } from "./datagram_descriptor.ts";
import { deliverDatagram } from "./deliver_datagram.ts";
import type { DatagramAddress } from "../libc/socket_address.ts";

/**
 * Datagrams that are read before everybody else has a turn: without it a flood
 * of them would hold up all other connections.
 */
const DATAGRAMS_PER_TURN = 128;

/** Bytes that may wait at the platform; more is lost, as a router does it. */
const WAITING_BYTES_MAX = 4 * 1024 * 1024;

/** What a waiting datagram costs beside its bytes. */
const WAITING_COSTS_BYTES = 512;

type Udp = { readonly transport: "udp" };

/** The used part of `Deno.DatagramConn`. */
interface PlatformSocket {
  readonly addr: DatagramAddress;
  receive(into: Uint8Array): Promise<[Uint8Array, DatagramAddress]>;
  send(bytes: Uint8Array, to: DatagramAddress & Udp): Promise<number>;
  close(): void;
}

/** It is there only under `--unstable-net`, which our launchers give. */
const platform = Deno as unknown as {
  readonly listenDatagram?: (options: DatagramAddress & Udp) => PlatformSocket;
};

export class DenoDatagramSocket implements DatagramSocket {
  #events: DatagramEvents | undefined;
  #waitingBytes = 0;
  #isClosed = false;
  /** While it reads. */
  #reading: Promise<void> | undefined;

  private constructor(private readonly socket: PlatformSocket) {}

  static open({ hostname, port }: DatagramAddress): DenoDatagramSocket {
    const at = hostname === "" ? "0.0.0.0" : hostname;
    const socket = platform
      .listenDatagram?.({ transport: "udp", hostname: at, port });
    if (socket !== undefined) return new DenoDatagramSocket(socket);
    const error = new Error("UDP needs --unstable-net or --allow-ffi");
    throw Object.assign(error, { code: "ENOTSUP" });
  }

  get address(): DatagramAddress {
    return this.socket.addr;
  }

  listen(events: DatagramEvents): void {
    this.#events = events;
    this.#reading = this.#receive(events);
  }

  /** The platform waits for room, and knows what cannot be sent at all. */
  send(bytes: Uint8Array, { hostname, port }: DatagramAddress): void {
    const waiting = bytes.length + WAITING_COSTS_BYTES;
    const isTooMuch = this.#waitingBytes + waiting > WAITING_BYTES_MAX;
    if (this.#isClosed || isTooMuch) return;
    this.#waitingBytes += waiting;
    const over = () => {
      this.#waitingBytes -= waiting;
    };
    // Copied, because the platform keeps it until the system has taken it.
    this.socket.send(bytes.slice(), { transport: "udp", hostname, port })
      .then(over, over);
  }

  close(closed?: () => void): void {
    if (!this.#isClosed) this.socket.close();
    this.#isClosed = true;
    if (closed === undefined) return;
    // The platform keeps the port for as long as a read of it is under way.
    const gone = Promise.resolve(this.#reading).then(closed);
    unawaited("datagram", gone, closed);
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
    let inTurn = 0;
    for (let failures = 0; !this.#isClosed;) {
      let received: [Uint8Array, DatagramAddress];
      try {
        received = await this.socket.receive(buffer);
      } catch (error) {
        if (this.#isClosed) return;
        if (++failures < READ_FAILURES_MAX) continue;
        return this.#events?.onError(error as Error);
      }
      failures = 0;
      const [bytes, { hostname, port }] = received;
      if (this.#isClosed) return;
      deliverDatagram(events, bytes, hostname, port);
      if (++inTurn < DATAGRAMS_PER_TURN) continue;
      inTurn = 0;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }
}

// --- What is read into ------------------------------------------------------------

/** The longest datagram there is, rounded up (RFC 768). */
const BUFFER_BYTES = 65_536;

/** Together they are large enough to be fresh memory of the kernel. */
const BUFFERS_PER_BLOCK = 64;

/** Buffers that were allocated together, and those of them that are free. */
interface Block {
  readonly free: Uint8Array<ArrayBuffer>[];
}

/** Blocks in which there is room; the last one is used up first. */
const roomy: Block[] = [];
const blocks = new WeakMap<ArrayBuffer, Block>();

/**
 * A shared buffer with undefined content. A buffer for each socket would be
 * cleared, and so get all its pages: 64 KiB for a session of a hundred bytes.
 */
function takeBuffer(): Uint8Array<ArrayBuffer> {
  let block = roomy.at(-1);
  if (block === undefined) roomy.push(block = allocate());
  const buffer = block.free.pop()!;
  if (block.free.length === 0) roomy.pop();
  return buffer;
}

/** Takes one back that is not read into any more. */
function giveBuffer(buffer: Uint8Array<ArrayBuffer>): void {
  const block = blocks.get(buffer.buffer)!;
  if (block.free.length === 0) roomy.push(block);
  block.free.push(buffer);
  // One empty block is kept; the pages of others go back to the system.
  if (block.free.length < BUFFERS_PER_BLOCK || roomy.length === 1) return;
  roomy.splice(roomy.indexOf(block), 1);
}

function allocate(): Block {
  const memory = new ArrayBuffer(BUFFERS_PER_BLOCK * BUFFER_BYTES);
  const free = Array.from(
    { length: BUFFERS_PER_BLOCK },
    (_, index) => new Uint8Array(memory, index * BUFFER_BYTES, BUFFER_BYTES),
  );
  const block = { free };
  blocks.set(memory, block);
  return block;
}
