/**
 * Sends the datagrams of one turn of the event loop with few system calls.
 *
 * Datagrams of one length to one address are given to the kernel as one buffer,
 * which the kernel cuts (UDP_SEGMENT, udp(7)): separate datagrams cost three to
 * five times as much. The order per address is kept.
 *
 * @module
 */

import type { DatagramDescriptor } from "./datagram_descriptor.ts";
import { encodePacketInfo } from "./packet_info.ts";
import { pointerTo, pointTo } from "../libc/system_error.ts";
import {
  type DatagramAddress,
  encodeSocketAddress,
  SOCKET_ADDRESS_BYTES,
} from "../libc/socket_address.ts";

/** Datagrams, and their bytes, that wait for the end of the turn at most. */
export const OUTBOX_WAITING_MAX = 64;
export const OUTBOX_WAITING_BYTES_MAX = 128 * 1024;

/**
 * The longest UDP payload over IPv4; IPv6 adds 20, which cannot be relied on.
 */
export const OUTBOX_DATAGRAM_BYTES_MAX = 65_507;

/** What fits an Ethernet frame over IPv6: the kernel cuts nothing longer. */
export const SEGMENT_BYTES_MAX = 1_452;

const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
const SOL_UDP = 17;
const UDP_SEGMENT = 103;

/** `struct iovec`, `struct mmsghdr` and a control message in words. */
const PIECE_WORDS = 4;
const HEADER_WORDS = 16;
const CONTROL_WORDS = 16;
const NAME_LENGTH_AT = 2;
const PIECES_AT = 4;
const PIECE_COUNT_AT = 6;
const CONTROL_AT = 8;
const CONTROL_LENGTH_AT = 10;

/** CMSG_LEN and CMSG_SPACE of the two bytes of a segment's length. */
const SEGMENT_LENGTH = 18;
const SEGMENT_SPACE = 24;

/** The used methods of a descriptor. */
type Descriptor = Pick<DatagramDescriptor, "number"> & {
  readonly library: Pick<DatagramDescriptor["library"], "sendmmsg">;
};

interface Waiting {
  readonly to: Destination;
  readonly at: number;
  readonly length: number;
}

interface Destination {
  readonly address: DatagramAddress;
  readonly name: Uint8Array;
  /** The local address that it leaves from. */
  readonly info: Uint8Array | undefined;
  waiting: Waiting[];
}

/** The way out of one socket. */
export class DatagramSender {
  /** The last one; most sockets have but this one, and need no table of them. */
  #last: Destination | undefined;
  #known: WeakMap<DatagramAddress, Destination> | undefined;
  #busy: Destination[] = [];
  /** Until the kernel or the path's MTU shows that it does not work. */
  #mayCut = true;

  /**
   * @param onUnsent Gets what the kernel did not take, because it has no room or
   *   for good, with its reason as the last error; a view that is valid only
   *   during the call.
   */
  constructor(
    private readonly descriptor: Descriptor,
    private readonly onUnsent: (bytes: Uint8Array, to: DatagramAddress) => void,
  ) {}

  /** Whether nothing waits for the end of the turn. */
  get isIdle(): boolean {
    return this.#busy.length === 0;
  }

  /** Sends a copy of `bytes` before the turn ends. */
  send(bytes: Uint8Array, address: DatagramAddress): void {
    const to = this.#destination(address);
    if (to === undefined || bytes.length > OUTBOX_DATAGRAM_BYTES_MAX) {
      return this.onUnsent(bytes, address);
    }
    outbox ??= new Outbox();
    const at = outbox.keep(bytes, this);
    if (to.waiting.length === 0) this.#busy.push(to);
    to.waiting.push({ to, at, length: bytes.length });
  }

  /** Sends the waiting datagrams. */
  flush(): void {
    if (this.#busy.length === 0) return;
    const waiting = this.#busy.flatMap((to) => to.waiting);
    for (const to of this.#busy) to.waiting = [];
    this.#busy = [];
    const { library, number } = this.descriptor;
    for (let first = 0; first < waiting.length;) {
      const starts = outbox!.address(waiting, first, this.#mayCut);
      const sent = library.sendmmsg(
        number,
        outbox!.headerBytes,
        starts.length,
        MSG_DONTWAIT | MSG_NOSIGNAL,
      );
      if (sent === starts.length) return;
      const failed = Math.max(0, sent);
      first = starts[failed]!;
      const isCut = (starts[failed + 1] ?? waiting.length) - first > 1;
      if (isCut) this.#mayCut = false;
      // The error is reported only if it stops at the first.
      else if (failed === 0) {
        const { at, length, to } = waiting[first++]!;
        this.onUnsent(outbox!.bytes.subarray(at, at + length), to.address);
      }
    }
  }

  /** Addresses are objects of the senders, which keep them. */
  #destination(address: DatagramAddress): Destination | undefined {
    const last = this.#last;
    if (last?.address === address) return last;
    const known = this.#known?.get(address);
    if (known !== undefined) return this.#last = known;
    const name = encodeSocketAddress(address);
    if (name === undefined) return undefined;
    const { local } = address;
    const info = local === undefined ? undefined : encodePacketInfo(local);
    const destination = { address, name, info, waiting: [] };
    if (last !== undefined) {
      this.#known ??= new WeakMap([[last.address, last]]);
      this.#known.set(address, destination);
    }
    return this.#last = destination;
  }
}

/** One for all sockets: a turn often has datagrams for several of them. */
let outbox: Outbox | undefined;

class Outbox {
  readonly bytes = new Uint8Array(OUTBOX_WAITING_BYTES_MAX);
  readonly #headers = new Uint32Array(OUTBOX_WAITING_MAX * HEADER_WORDS);
  readonly headerBytes = new Uint8Array(this.#headers.buffer);
  readonly #names = new Uint8Array(OUTBOX_WAITING_MAX * SOCKET_ADDRESS_BYTES);
  readonly #pieces = new Uint32Array(OUTBOX_WAITING_MAX * PIECE_WORDS);
  readonly #controls = new Uint32Array(OUTBOX_WAITING_MAX * CONTROL_WORDS);
  readonly #controlBytes = new Uint8Array(this.#controls.buffer);
  readonly #bytesAt = pointerTo(this.bytes);
  readonly #piecesAt = pointerTo(this.#pieces);
  readonly #senders = new Set<DatagramSender>();
  #used = 0;
  #count = 0;

  constructor() {
    const [names, controls] = [this.#names, this.#controls].map(pointerTo);
    for (let index = 0; index < OUTBOX_WAITING_MAX; index++) {
      const header = index * HEADER_WORDS;
      const control = index * CONTROL_WORDS;
      pointTo(this.#headers, header, names! + index * SOCKET_ADDRESS_BYTES);
      pointTo(this.#headers, header + CONTROL_AT, controls! + control * 4);
    }
  }

  /** @returns Where in `bytes` the copy is until the next flush. */
  keep(datagram: Uint8Array, sender: DatagramSender): number {
    const isFull = this.#count === OUTBOX_WAITING_MAX ||
      this.#used + datagram.length > OUTBOX_WAITING_BYTES_MAX;
    if (isFull) this.#flush();
    if (this.#count === 0) queueMicrotask(() => this.#flush());
    const at = this.#used;
    this.bytes.set(datagram, at);
    this.#used += datagram.length;
    this.#count++;
    this.#senders.add(sender);
    return at;
  }

  /**
   * Writes the headers for waiting datagrams, from `first` on.
   *
   * @param mayCut Whether the kernel may get several as one buffer.
   * @returns The datagram at which each header starts.
   */
  address(
    waiting: readonly Waiting[],
    first: number,
    mayCut: boolean,
  ): number[] {
    const starts: number[] = [];
    for (let start = first; start < waiting.length;) {
      const end = mayCut ? endOfRun(waiting, start) : start + 1;
      const header = starts.length * HEADER_WORDS;
      const { name } = waiting[start]!.to;
      this.#names.set(name, starts.length * SOCKET_ADDRESS_BYTES);
      this.#headers[header + NAME_LENGTH_AT] = name.length;
      const piece = this.#piecesAt + start * PIECE_WORDS * 4;
      pointTo(this.#headers, header + PIECES_AT, piece);
      this.#headers[header + PIECE_COUNT_AT] = end - start;
      const segment = end - start > 1 ? waiting[start]!.length : undefined;
      this.#headers[header + CONTROL_LENGTH_AT] = this.#control(
        starts.length * CONTROL_WORDS,
        waiting[start]!.to.info,
        segment,
      );
      for (let index = start; index < end; index++) {
        const { at, length } = waiting[index]!;
        pointTo(this.#pieces, index * PIECE_WORDS, this.#bytesAt + at);
        this.#pieces[index * PIECE_WORDS + 2] = length;
      }
      starts.push(start);
      start = end;
    }
    return starts;
  }

  /** Writes the datagrams of one header. @returns Bytes. */
  #control(
    at: number,
    info: Uint8Array | undefined,
    segment: number | undefined,
  ): number {
    let bytes = 0;
    if (info !== undefined) {
      this.#controlBytes.set(info, at * 4);
      bytes = info.length;
    }
    if (segment === undefined) return bytes;
    const words = at + bytes / 4;
    this.#controls[words] = SEGMENT_LENGTH;
    this.#controls[words + 1] = 0;
    this.#controls[words + 2] = SOL_UDP;
    this.#controls[words + 3] = UDP_SEGMENT;
    this.#controls[words + 4] = segment;
    return bytes + SEGMENT_SPACE;
  }

  #flush(): void {
    for (const sender of this.#senders) sender.flush();
    this.#senders.clear();
    this.#used = 0;
    this.#count = 0;
  }
}

/**
 * Where a run of datagrams that the kernel may cut ends: only the last may be
 * shorter.
 */
function endOfRun(waiting: readonly Waiting[], start: number): number {
  const { to, length } = waiting[start]!;
  if (length === 0 || length > SEGMENT_BYTES_MAX) return start + 1;
  const runMax = start + Math.floor(OUTBOX_DATAGRAM_BYTES_MAX / length);
  let end = start + 1;
  while (end < Math.min(runMax, waiting.length)) {
    const next = waiting[end]!;
    const fits = next.to === to && next.length > 0 && next.length <= length;
    if (!fits) break;
    end++;
    if (next.length < length) break;
  }
  return end;
}
