/**
 * A UDP socket by its descriptor: many datagrams per system call, and buffers
 * that outlast a pause. Its owner waits and closes.
 *
 * @module
 */

import {
  PACKET_INFO_BYTES,
  PacketInfoReader,
  wantPacketInfo,
} from "./packet_info.ts";
import { Errno, pointerTo, pointTo } from "../libc/system_error.ts";
import { lastError, type LibC } from "../libc/libc.ts";
import {
  type DatagramAddress,
  encodeSocketAddress,
  SOCKET_ADDRESS_BYTES,
  SocketAddressReader,
} from "../libc/socket_address.ts";
import {
  setSocketOption,
  SO_ERROR,
  socketOption,
  SOL_SOCKET,
} from "../libc/socket_option.ts";

/**
 * The kernel buffers of a socket, for each direction. The kernel's default
 * holds 92 datagrams of 1,200 bytes (with overhead): 4 ms at 200 Mbit/s, which
 * is less than a garbage collection takes. The kernel gives twice the requested
 * size, but no more than `net.core.rmem_max` to a process that may not
 * administer the network.
 */
export const KERNEL_BUFFER_BYTES: number = 2 * 1024 * 1024;

/**
 * The same for a socket that is one of thousands with little traffic each: the
 * longest datagram has room in it four times over.
 */
export const SESSION_BUFFER_BYTES: number = 256 * 1024;

/** Datagrams that one system call reads. */
export const DATAGRAMS_PER_READ = 32;

/**
 * Reads that may fail one after the other. Some systems report there that an
 * earlier datagram was refused, and the socket goes on; a dead one fails always.
 */
export const READ_FAILURES_MAX = 16;

/** The longest datagram there is, rounded up (RFC 768): none is ever cut. */
const SLOT_BYTES = 65_536;

/** From `asm-generic/socket.h`, common to x86-64 and arm64. */
const SO_SNDBUF = 7;
const SO_RCVBUF = 8;
const SO_SNDBUFFORCE = 32;
const SO_RCVBUFFORCE = 33;
const MSG_DONTWAIT = 0x40;

/** Errors of a read that mean "nothing to read now". */
const PAUSES: ReadonlySet<number> = new Set([Errno.EAGAIN, Errno.EINTR]);

/**
 * Sizes of `struct iovec` and `struct mmsghdr` in words, and the offsets of
 * their fields.
 */
const PIECE_WORDS = 4;
const HEADER_WORDS = 16;
const NAME_LENGTH_AT = 2;
const PIECES_AT = 4;
const PIECE_COUNT_AT = 6;
const CONTROL_AT = 8;
const CONTROL_LENGTH_AT = 10;
const LENGTH_AT = 14;

/** Not to be used once the socket is closed. */
export class DatagramDescriptor {
  constructor(
    readonly library: LibC,
    readonly number: number,
    kernelBytes: number,
  ) {
    this.#enlarge(kernelBytes, SO_RCVBUFFORCE, SO_RCVBUF);
    this.#enlarge(kernelBytes, SO_SNDBUFFORCE, SO_SNDBUF);
  }

  /**
   * Connects the socket: from now on it receives only datagrams of `peer`, and
   * reports the peer's refusals (ICMP) as errors.
   *
   * @returns Whether the kernel has a route to it.
   */
  connect(peer: DatagramAddress): boolean {
    const name = encodeSocketAddress(peer);
    if (name === undefined) return false;
    const { library, number } = this;
    handedName.set(name);
    return library.connect(number, handedName, name.length) === 0;
  }

  /**
   * The error since the last call, in Linux's numbers; 0: none. The platform
   * does not wake for a refusal; epoll(7) does.
   */
  takeError(): number {
    return socketOption(this.library, this.number, SOL_SOCKET, SO_ERROR) ?? 0;
  }

  /**
   * Reads the waiting datagrams, at most {@linkcode DATAGRAMS_PER_READ}.
   *
   * @param onDatagram Gets a view that is valid only during the call, and
   *   returns whether it wants more; `local` is given if the socket reports it.
   * @returns How many were read; negative: the read failed, see the last error.
   */
  read(
    onDatagram: (
      bytes: Uint8Array,
      host: string,
      port: number,
      local: string | undefined,
    ) => boolean,
  ): number {
    slots ??= new Slots();
    const { headers, bytes, senders, infos } = slots;
    const count = this.library.recvmmsg(
      this.number,
      slots.headerBytes,
      DATAGRAMS_PER_READ,
      MSG_DONTWAIT,
      null,
    );
    if (count < 0) return PAUSES.has(lastError(this.library)) ? 0 : count;
    for (let index = 0; index < count; index++) {
      const header = index * HEADER_WORDS;
      // The kernel has written the length of the name, and the flags.
      headers[header + NAME_LENGTH_AT] = SOCKET_ADDRESS_BYTES;
      slots.infoLengths[index] = headers[header + CONTROL_LENGTH_AT]!;
      headers[header + CONTROL_LENGTH_AT] = PACKET_INFO_BYTES;
    }
    for (let index = 0; index < count; index++) {
      const start = index * SLOT_BYTES;
      const length = headers[index * HEADER_WORDS + LENGTH_AT]!;
      const name = index * SOCKET_ADDRESS_BYTES;
      const host = senders.host(name);
      if (host === undefined) continue;
      const datagram = bytes.subarray(start, start + length);
      const infoLength = slots.infoLengths[index]!;
      const local = infoLength === 0
        ? undefined
        : infos.host(index * PACKET_INFO_BYTES, infoLength);
      if (!onDatagram(datagram, host, senders.port(name), local)) break;
    }
    return count;
  }

  /** From now on the socket reports the local address of each datagram. */
  wantLocal(isIpv6: boolean): boolean {
    return wantPacketInfo(this.library, this.number, isIpv6);
  }

  /** @param forced The option that needs CAP_NET_ADMIN and has no limit. */
  #enlarge(bytes: number, forced: number, polite: number): void {
    const set = (option: number) =>
      setSocketOption(this.library, this.number, SOL_SOCKET, option, bytes);
    if (!set(forced)) set(polite);
  }
}

/** One for all sockets, as each read is dealt with at once. */
let slots: Slots | undefined;

class Slots {
  // Pages are the system's until a datagram is long enough to need them.
  readonly bytes = new Uint8Array(DATAGRAMS_PER_READ * SLOT_BYTES);
  readonly headers = new Uint32Array(DATAGRAMS_PER_READ * HEADER_WORDS);
  readonly headerBytes = new Uint8Array(this.headers.buffer);
  readonly #names = new Uint8Array(DATAGRAMS_PER_READ * SOCKET_ADDRESS_BYTES);
  readonly senders = new SocketAddressReader(this.#names);
  readonly #infos = new Uint8Array(DATAGRAMS_PER_READ * PACKET_INFO_BYTES);
  readonly infos = new PacketInfoReader(this.#infos);
  readonly infoLengths = new Uint32Array(DATAGRAMS_PER_READ);
  /** Kept, because the headers point into it. */
  readonly #pieces = new Uint32Array(DATAGRAMS_PER_READ * PIECE_WORDS);

  constructor() {
    const [bytes, names, pieces, infos] = [
      this.bytes,
      this.#names,
      this.#pieces,
      this.#infos,
    ].map(pointerTo);
    for (let index = 0; index < DATAGRAMS_PER_READ; index++) {
      const piece = index * PIECE_WORDS;
      pointTo(this.#pieces, piece, bytes! + index * SLOT_BYTES);
      this.#pieces[piece + 2] = SLOT_BYTES;
      const header = index * HEADER_WORDS;
      pointTo(this.headers, header, names! + index * SOCKET_ADDRESS_BYTES);
      this.headers[header + NAME_LENGTH_AT] = SOCKET_ADDRESS_BYTES;
      pointTo(this.headers, header + PIECES_AT, pieces! + piece * 4);
      this.headers[header + PIECE_COUNT_AT] = 1;
      const info = infos! + index * PACKET_INFO_BYTES;
      pointTo(this.headers, header + CONTROL_AT, info);
      this.headers[header + CONTROL_LENGTH_AT] = PACKET_INFO_BYTES;
    }
  }
}

// A buffer for the C library lies outside V8's heap: one is shared by all,
// because one for each socket would stay in memory until a collection.
const handedName = new Uint8Array(SOCKET_ADDRESS_BYTES);
