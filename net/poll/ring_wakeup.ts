/**
 * Has the kernel wake the platform's event loop when a descriptor of an epoll
 * becomes ready, without a thread that waits.
 *
 * The platform's loop does not accept foreign descriptors, but it reads pipes.
 * So the kernel is given two orders in a row (io_uring(7)): wait until the
 * epoll is ready, then write one byte into a pipe. Both run in the kernel, on
 * this thread, while it sleeps in the platform's loop.
 *
 * Containers often forbid io_uring (seccomp), and kernels before 5.9 lack the
 * needed operations: then it is not used.
 *
 * @module
 */

import net from "node:net";
import type { LibC } from "../libc/libc.ts";
import { Errno, pointerTo, pointTo } from "../libc/system_error.ts";
import type { Wakeup } from "./poller.ts";

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
/**
 * Linux 5.9 added it. It is not used itself, but older kernels do not interrupt
 * a sleep for work that they must finish on this thread (5.7), so this thread
 * would never wake.
 */
const FEAT_POLL_32BITS = 1 << 6;

/** Offsets of the mappings (mmap(2) of a ring). */
const RING_OFFSET = 0n;
const ORDERS_OFFSET = 0x10000000n;
const PROT_READ_WRITE = 3;
const MAP_SHARED_POPULATE = 0x8001;

/** Size of `struct io_uring_sqe` in words, and the offsets of its fields. */
const ORDER_WORDS = 16;
const DESCRIPTOR_AT = 1;
const OFFSET_AT = 2;
const ADDRESS_AT = 4;
const LENGTH_AT = 6;
const OPERATION_FLAGS_AT = 7;
/** `struct io_uring_cqe`, the same. */
const RESULT_WORDS = 4;
const RESULT_AT = 2;

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

export class RingWakeup implements Wakeup {
  readonly kind = "ring";
  readonly #bell: number;
  readonly #reader: net.Socket;
  #state: "working" | "broken" | "closed" = "working";
  /** What is written into the pipe; the kernel has its address. */
  readonly #byte = new Uint8Array(1);
  readonly #byteAt = pointerTo(this.#byte);

  /** @returns `undefined` when that is impossible here. */
  static open(
    library: LibC,
    epoll: number,
    onReady: () => void,
  ): RingWakeup | undefined {
    const ring = openRing(library);
    if (ring === undefined) return undefined;
    const ends = new Int32Array(2);
    if (library.pipe2(new Uint8Array(ends.buffer), PIPE_FLAGS) === 0) {
      return new RingWakeup(library, ring, epoll, ends, onReady);
    }
    closeRing(library, ring);
    return undefined;
  }

  private constructor(
    private readonly library: LibC,
    private readonly ring: Ring,
    private readonly epoll: number,
    [readEnd, writeEnd]: Int32Array,
    onReady: () => void,
  ) {
    this.#bell = writeEnd!;
    this.#reader = new net.Socket({
      fd: readEnd!,
      readable: true,
      writable: false,
      onread: {
        buffer: new Uint8Array(ENTRIES),
        callback: () => (onReady(), true),
      },
    } as net.SocketConstructorOpts);
    // It never ends. If it does, the next `wait` reports that.
    const onBroken = () => {
      if (this.#state !== "working") return;
      this.#state = "broken";
      onReady();
    };
    this.#reader.on("error", onBroken);
    this.#reader.on("close", onBroken);
  }

  /**
   * A second wait while one is under way only costs one order more: both write
   * into the pipe, and one read takes both bytes.
   */
  wait(): boolean {
    if (this.#state !== "working") return false;
    const { descriptor, words, sqHead, sqTail } = this.ring;
    // What the kernel would not take the last time is forgotten.
    words[sqTail] = words[sqHead]!;
    this.#order(POLL_ADD_THEN_NEXT, this.epoll, 0, 0, POLLIN);
    this.#order(WRITE, this.#bell, this.#byteAt, 1, 0);
    const { io_uring_enter } = this.library;
    const given = io_uring_enter(ENTER, descriptor, ORDERS, 0n, 0n, 0n, 0n);
    if (given === ORDERS && this.#takeResults()) return true;
    // For example out of memory. A wakeup must not be in an unknown state.
    this.#state = "broken";
    return false;
  }

  close(): Promise<void> {
    const isOver = this.#reader.destroyed;
    this.#state = "closed";
    closeRing(this.library, this.ring);
    this.library.close(this.#bell);
    const { promise, resolve } = Promise.withResolvers<void>();
    if (isOver) resolve();
    this.#reader.once("close", () => resolve());
    this.#reader.destroy();
    return promise;
  }

  /** Reads the results of earlier orders. @returns Whether all is well. */
  #takeResults(): boolean {
    const { words, cqHead, cqTail, cqMask, results } = this.ring;
    const tail = Atomics.load(words, cqTail);
    let areWell = true;
    for (let head = words[cqHead]!; head !== tail; head = (head + 1) | 0) {
      const result = words[results + (head & cqMask) * RESULT_WORDS]!;
      // A pipe that is full has bytes enough.
      if (result < 0 && result !== -Errno.EAGAIN) areWell = false;
    }
    Atomics.store(words, cqHead, tail);
    return areWell;
  }

  #order(
    operation: number,
    descriptor: number,
    address: number,
    length: number,
    flags: number,
  ): void {
    const { words, orders, sqTail, sqMask, sqArray } = this.ring;
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
  readonly sqHead: number;
  readonly sqTail: number;
  readonly sqMask: number;
  readonly sqArray: number;
  readonly cqHead: number;
  readonly cqTail: number;
  readonly cqMask: number;
  /** The first one's result. */
  readonly results: number;
  readonly mappings: readonly Mapping[];
}

interface Mapping {
  readonly at: Deno.PointerObject;
  readonly bytes: number;
}

function openRing(library: LibC): Ring | undefined {
  // The newest way first.
  for (const flags of [SETUP_COOP_TASKRUN, 0]) {
    const params = new Uint32Array(PARAMS_WORDS);
    params[FLAGS_AT] = flags;
    const bytes = new Uint8Array(params.buffer);
    const descriptor = library.io_uring_setup(SETUP, ENTRIES, bytes);
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
  const wanted = FEAT_SINGLE_MMAP | FEAT_POLL_32BITS;
  if ((params[FEATURES_AT]! & wanted) !== wanted) return undefined;
  const sq = params.subarray(SQ_OFFSETS_AT, CQ_OFFSETS_AT);
  const cq = params.subarray(CQ_OFFSETS_AT, PARAMS_WORDS);
  const entries = params[SQ_ENTRIES_AT]!;
  const ringBytes = Math.max(
    sq[6]! + entries * 4,
    cq[5]! + params[CQ_ENTRIES_AT]! * RESULT_WORDS * 4,
  );
  const queues = map(library, descriptor, ringBytes, RING_OFFSET);
  const orderBytes = entries * ORDER_WORDS * 4;
  const orders = map(library, descriptor, orderBytes, ORDERS_OFFSET);
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
    sqHead: sq[0]! / 4,
    sqTail: sq[1]! / 4,
    sqMask: words[sq[2]! / 4]!,
    sqArray: sq[6]! / 4,
    cqHead: cq[0]! / 4,
    cqTail: cq[1]! / 4,
    cqMask: words[cq[2]! / 4]!,
    results: cq[5]! / 4 + RESULT_AT,
    mappings,
  };
}

function map(
  library: LibC,
  descriptor: bigint,
  bytes: number,
  offset: bigint,
): Mapping | undefined {
  const at = library.mmap(
    null,
    BigInt(bytes),
    PROT_READ_WRITE,
    MAP_SHARED_POPULATE,
    Number(descriptor),
    offset,
  );
  // MAP_FAILED is −1.
  if (at === null || Deno.UnsafePointer.value(at) === MAP_FAILED) {
    return undefined;
  }
  return { at, bytes };
}

const MAP_FAILED = 2n ** 64n - 1n;

function bufferOf({ at, bytes }: Mapping): ArrayBuffer {
  return Deno.UnsafePointerView.getArrayBuffer(at, bytes);
}

function unmap(library: LibC, mappings: readonly Mapping[]): void {
  for (const { at, bytes } of mappings) library.munmap(at, BigInt(bytes));
}

/** Its memory must not be touched after that. */
function closeRing(library: LibC, ring: Ring): void {
  library.close(Number(ring.descriptor));
  unmap(library, ring.mappings);
}
