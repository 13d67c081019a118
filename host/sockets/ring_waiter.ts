/**
 * Has the kernel wake the platform's event loop when a descriptor of an epoll
 * becomes ready, without a thread that waits.
 *
 * The platform's loop takes no descriptors of others, but it does read pipes.
 * So the kernel is given two orders in a row (io_uring(7)): wait until the epoll
 * is ready, then write one octet into a pipe. Both run in the kernel, on this
 * thread, while it sleeps in the platform's loop.
 *
 * Containers often forbid io_uring (seccomp), and kernels before 5.6 lack what
 * is used of it: then there is none.
 *
 * @module
 */

import net from "node:net";
import { setImmediate } from "node:timers";
import type { LibC } from "./libc.ts";
import { pointerTo, pointTo } from "./pointers.ts";
import type { Waiter } from "./poller.ts";

/** Orders that the ring holds; two are under way at most. */
const ENTRIES = 4;

/** `struct io_uring_params` (io_uring_setup(2)), in words. */
const PARAMS_WORDS = 30;
const SQ_ENTRIES_AT = 0;
const CQ_ENTRIES_AT = 1;
const FLAGS_AT = 2;
const FEATURES_AT = 5;
const SQ_OFFSETS_AT = 10;
const CQ_OFFSETS_AT = 20;

/** Do not interrupt what runs: it comes by the kernel by itself. Linux 5.19. */
const SETUP_COOP_TASKRUN = 1 << 8;
/** Both queues in one mapping. Linux 5.4. */
const FEAT_SINGLE_MMAP = 1;
/** Writes at the current position, which pipes need. Linux 5.6. */
const FEAT_RW_CUR_POS = 1 << 3;

/** Offsets of the mappings (mmap(2) of a ring). */
const RING_OFFSET = 0n;
const ORDERS_OFFSET = 0x10000000n;
const PROT_READ_WRITE = 3;
const MAP_SHARED_POPULATE = 0x8001;

/** `struct io_uring_sqe`, in words, and what is where in it. */
const ORDER_WORDS = 16;
const DESCRIPTOR_AT = 1;
const OFFSET_AT = 2;
const ADDRESS_AT = 4;
const LENGTH_AT = 6;
const OPERATION_FLAGS_AT = 7;
const RESULT_WORDS = 4;

/** First word of an order: operation, and flags above it. */
const POLL_ADD_THEN_NEXT = 6 | (1 << 2) << 8; // IOSQE_IO_LINK
const WRITE = 23;
const POLLIN = 1;

/** Orders of one wait. */
const ORDERS = 2n;

/** System calls by number, the same on every architecture. */
const ENTER = 426n;
const SETUP = 425n;
const PIPE_FLAGS = 0x80800; // O_CLOEXEC, O_NONBLOCK

/** See the module description. */
export class RingWaiter implements Waiter {
  readonly #library: LibC;
  readonly #ring: Ring;
  readonly #epoll: number;
  readonly #bell: number;
  readonly #reader: net.Socket;
  readonly #onReady: () => void;
  /** What is written into the pipe; the kernel has its address. */
  readonly #octet = new Uint8Array(1);
  readonly #octetAt = pointerTo(this.#octet);

  /** @returns `undefined` where that is not possible. */
  static open(
    library: LibC,
    epoll: number,
    onReady: () => void,
  ): RingWaiter | undefined {
    const ring = openRing(library);
    if (ring === undefined) return undefined;
    const ends = new Int32Array(2);
    if (library.pipe2(new Uint8Array(ends.buffer), PIPE_FLAGS) === 0) {
      return new RingWaiter(library, ring, epoll, ends, onReady);
    }
    closeRing(library, ring);
    return undefined;
  }

  private constructor(
    library: LibC,
    ring: Ring,
    epoll: number,
    [readEnd, writeEnd]: Int32Array,
    onReady: () => void,
  ) {
    this.#library = library;
    this.#ring = ring;
    this.#epoll = epoll;
    this.#bell = writeEnd!;
    this.#onReady = onReady;
    this.#reader = new net.Socket({
      fd: readEnd!,
      readable: true,
      writable: false,
      onread: {
        buffer: new Uint8Array(ENTRIES),
        callback: () => (onReady(), true),
      },
    } as net.SocketConstructorOpts);
  }

  wait(): void {
    const { words, cqHead, cqTail } = this.#ring;
    // What came of the orders before: they have done what they are for.
    words[cqHead] = Atomics.load(words, cqTail);
    this.#order(POLL_ADD_THEN_NEXT, this.#epoll, 0, 0, POLLIN);
    this.#order(WRITE, this.#bell, this.#octetAt, 1, 0);
    const { descriptor } = this.#ring;
    const { io_uring_enter } = this.#library;
    const given = io_uring_enter(ENTER, descriptor, ORDERS, 0n, 0n, 0n, 0n);
    // Out of memory, say: looked at again, and asked again, in the next turn.
    if (given !== ORDERS) setImmediate(this.#onReady);
  }

  close(): Promise<void> {
    closeRing(this.#library, this.#ring);
    this.#library.close(this.#bell);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#reader.once("close", () => resolve());
    this.#reader.destroy();
    return promise;
  }

  #order(
    operation: number,
    descriptor: number,
    address: number,
    length: number,
    flags: number,
  ): void {
    const { words, orders, sqTail, sqMask, sqArray } = this.#ring;
    const tail = words[sqTail]!;
    const index = tail & sqMask;
    const at = index * ORDER_WORDS;
    orders.fill(0, at, at + ORDER_WORDS);
    orders[at] = operation;
    orders[at + DESCRIPTOR_AT] = descriptor;
    // A pipe has no positions: −1.
    if (operation === WRITE) orders.fill(0xffffffff, at + OFFSET_AT, at + 4);
    pointTo(orders, at + ADDRESS_AT, address);
    orders[at + LENGTH_AT] = length;
    orders[at + OPERATION_FLAGS_AT] = flags;
    words[sqArray + index] = index;
    Atomics.store(words, sqTail, tail + 1);
  }
}

/** A ring and its mappings; the numbers are places in `words`. */
interface Ring {
  readonly descriptor: bigint;
  readonly words: Int32Array;
  readonly orders: Uint32Array;
  readonly sqTail: number;
  readonly sqMask: number;
  readonly sqArray: number;
  readonly cqHead: number;
  readonly cqTail: number;
  readonly mappings: readonly Mapping[];
}

interface Mapping {
  readonly at: Deno.PointerObject;
  readonly octets: number;
}

function openRing(library: LibC): Ring | undefined {
  // The newest way first.
  for (const flags of [SETUP_COOP_TASKRUN, 0]) {
    const params = new Uint32Array(PARAMS_WORDS);
    params[FLAGS_AT] = flags;
    const octets = new Uint8Array(params.buffer);
    const descriptor = library.io_uring_setup(SETUP, ENTRIES, octets);
    if (descriptor < 0n) continue;
    const ring = mapRing(library, descriptor, params);
    if (ring !== undefined) return ring;
    library.close(Number(descriptor));
  }
  return undefined;
}

function mapRing(
  library: LibC,
  descriptor: bigint,
  params: Uint32Array,
): Ring | undefined {
  const wanted = FEAT_SINGLE_MMAP | FEAT_RW_CUR_POS;
  if ((params[FEATURES_AT]! & wanted) !== wanted) return undefined;
  const sq = params.subarray(SQ_OFFSETS_AT, CQ_OFFSETS_AT);
  const cq = params.subarray(CQ_OFFSETS_AT, PARAMS_WORDS);
  const entries = params[SQ_ENTRIES_AT]!;
  const ringOctets = Math.max(
    sq[6]! + entries * 4,
    cq[5]! + params[CQ_ENTRIES_AT]! * RESULT_WORDS * 4,
  );
  const queues = map(library, descriptor, ringOctets, RING_OFFSET);
  const orderOctets = entries * ORDER_WORDS * 4;
  const orders = map(library, descriptor, orderOctets, ORDERS_OFFSET);
  const mappings = [queues, orders].filter((one) => one !== undefined);
  if (queues === undefined || orders === undefined) {
    unmap(library, mappings);
    return undefined;
  }
  const words = new Int32Array(bufferOf(queues));
  return {
    descriptor,
    words,
    orders: new Uint32Array(bufferOf(orders)),
    sqTail: sq[1]! / 4,
    sqMask: words[sq[2]! / 4]!,
    sqArray: sq[6]! / 4,
    cqHead: cq[0]! / 4,
    cqTail: cq[1]! / 4,
    mappings,
  };
}

function map(
  library: LibC,
  descriptor: bigint,
  octets: number,
  offset: bigint,
): Mapping | undefined {
  const at = library.mmap(
    null,
    BigInt(octets),
    PROT_READ_WRITE,
    MAP_SHARED_POPULATE,
    Number(descriptor),
    offset,
  );
  // MAP_FAILED is −1.
  if (at === null || Deno.UnsafePointer.value(at) === MAP_FAILED) {
    return undefined;
  }
  return { at, octets };
}

const MAP_FAILED = 2n ** 64n - 1n;

function bufferOf({ at, octets }: Mapping): ArrayBuffer {
  return Deno.UnsafePointerView.getArrayBuffer(at, octets);
}

function unmap(library: LibC, mappings: readonly Mapping[]): void {
  for (const { at, octets } of mappings) library.munmap(at, BigInt(octets));
}

/** Nobody may touch its memory after that. */
function closeRing(library: LibC, ring: Ring): void {
  library.close(Number(ring.descriptor));
  unmap(library, ring.mappings);
}
