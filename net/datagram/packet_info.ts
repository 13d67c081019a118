/**
 * Which of this machine's addresses a datagram came to, and from which one its
 * answer must leave (IP_PKTINFO of ip(7), IPV6_RECVPKTINFO of ipv6(7)).
 *
 * A socket for all addresses answers from the one that the routing table
 * prefers, and a client that used another one drops the answer as another
 * host's. So the kernel reports the address with each datagram, and gets it
 * with each answer.
 *
 * @module
 */

import {
  formatIpAddress,
  parseIpAddress,
} from "../../proto/peer/ip_address.ts";
import type { LibC } from "../libc/libc.ts";
import { setSocketOption } from "../libc/socket_option.ts";

/** From `linux/in.h` and `linux/in6.h`. */
const SOL_IP = 0;
const IP_PKTINFO = 8;
const SOL_IPV6 = 41;
const IPV6_RECVPKTINFO = 49;
const IPV6_PKTINFO = 50;

/** `struct cmsghdr` before its data; the next begins at a multiple of eight. */
const HEADER_BYTES = 16;
const ALIGNMENT = 8;

/**
 * `struct in_pktinfo`: interface, the address to answer from, the destination.
 */
const IPV4_INFO_BYTES = 12;
const ANSWER_FROM_AT = 4;
/** `struct in6_pktinfo`: the destination, interface. */
const IPV6_INFO_BYTES = 20;
const INTERFACE_AT = 16;

/** Both of them: a socket for both families may get both. */
export const PACKET_INFO_BYTES = 72;

/**
 * Makes the kernel report it from now on.
 *
 * @param isIpv6 The socket's family; it may receive IPv4 as well.
 */
export function wantPacketInfo(
  library: LibC,
  descriptor: number,
  isIpv6: boolean,
): boolean {
  const set = (level: number, option: number) =>
    setSocketOption(library, descriptor, level, option, 1);
  // For a broadcast only this field has the address to answer from.
  const isIpv4Set = set(SOL_IP, IP_PKTINFO);
  return isIpv6 ? set(SOL_IPV6, IPV6_RECVPKTINFO) : isIpv4Set;
}

/** Reads the kernel's message, and remembers the last address. */
export class PacketInfoReader {
  readonly #view: DataView;
  #last = new Uint8Array(0);
  #lastHost = "";

  /** @param bytes Holds the control messages. */
  constructor(private readonly bytes: Uint8Array) {
    this.#view = new DataView(
      bytes.buffer,
      bytes.byteOffset,
      bytes.byteLength,
    );
  }

  /**
   * The destination, IPv4 as IPv4, followed by `%` and the interface if it is
   * valid only there.
   *
   * @param at Offset of the datagram's control messages.
   * @param length Their total length.
   */
  host(at: number, length: number): string | undefined {
    const end = at + length;
    let local: string | undefined;
    while (at + HEADER_BYTES <= end) {
      const size = this.#view.getUint32(at, true);
      if (size < HEADER_BYTES || at + size > end) break;
      const level = this.#view.getUint32(at + 8, true);
      const type = this.#view.getUint32(at + 12, true);
      const data = at + HEADER_BYTES;
      if (level === SOL_IP && type === IP_PKTINFO) {
        return this.#read(data + ANSWER_FROM_AT, 4);
      }
      if (level === SOL_IPV6 && type === IPV6_PKTINFO) {
        local = this.#readIpv6(data);
      }
      at += Math.ceil(size / ALIGNMENT) * ALIGNMENT;
    }
    return local;
  }

  #readIpv6(at: number): string | undefined {
    const [first, second] = [this.bytes[at]!, this.bytes[at + 1]!];
    // Multicast: no answer leaves from such an address.
    if (first === 0xff) return undefined;
    const host = this.#read(at, 16);
    const isOfLink = first === 0xfe && (second & 0xc0) === 0x80;
    return isOfLink
      ? `${host}%${this.#view.getUint32(at + INTERFACE_AT, true)}`
      : host;
  }

  /** Most datagrams come to the same address as the one before. */
  #read(at: number, length: number): string {
    if (!this.#isLast(at, length)) {
      this.#last = this.bytes.slice(at, at + length);
      this.#lastHost = formatIpAddress(plain(this.#last));
    }
    return this.#lastHost;
  }

  #isLast(at: number, length: number): boolean {
    if (this.#last.length !== length) return false;
    for (let index = 0; index < length; index++) {
      if (this.#last[index] !== this.bytes[at + index]) return false;
    }
    return true;
  }
}

/**
 * The control message that makes a datagram leave from `local`.
 *
 * @param local As {@linkcode PacketInfoReader.host} returns it.
 * @returns `undefined` when `local` is no address.
 */
export function encodePacketInfo(local: string): Uint8Array | undefined {
  const [host = "", zone = "0"] = local.split("%");
  const ip = parseIpAddress(host);
  if (ip === undefined) return undefined;
  const isIpv4 = ip.length === 4;
  const length = HEADER_BYTES +
    (isIpv4 ? IPV4_INFO_BYTES : IPV6_INFO_BYTES);
  const bytes = new Uint8Array(Math.ceil(length / ALIGNMENT) * ALIGNMENT);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, length, true);
  view.setUint32(8, isIpv4 ? SOL_IP : SOL_IPV6, true);
  view.setUint32(12, isIpv4 ? IP_PKTINFO : IPV6_PKTINFO, true);
  bytes.set(ip, HEADER_BYTES + (isIpv4 ? ANSWER_FROM_AT : 0));
  if (!isIpv4) {
    view.setUint32(HEADER_BYTES + INTERFACE_AT, Number(zone), true);
  }
  return bytes;
}

/** IPv4 that a socket of IPv6 has received, as IPv4. */
function plain(ip: Uint8Array): Uint8Array {
  return parseIpAddress(formatIpAddress(ip)) ?? ip;
}
