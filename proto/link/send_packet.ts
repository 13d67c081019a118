/**
 * Packets onto a call's body, whichever side of it we are.
 *
 * @module
 */

import { joinedBytes } from "../bytes/byte_arrays.ts";
import type { CallBody } from "../grpc/call.ts";
import {
  DATA_FRAME_BYTES,
  dataBytesThatFit,
  GO_DATA_BYTES,
  writeDataHead,
} from "../packets/data_head.ts";
import { encodePacket } from "../packets/packet_codec.ts";
import type { Int64, Packet } from "../packets/packet.ts";
import type { PacketObserver } from "./link.ts";

/** Bytes of datagrams kept for a peer that takes none; then they are dropped. */
export const DATAGRAM_KEPT_BYTES_MAX = 256 * 1024;

/**
 * Least room for a DATA packet to be worth its head. The packet is a message of
 * its own, which may be cut, so it never waits for more room.
 */
const CRAMPED_BYTES = 64;

/** Sends packets on one body. Fresh packets never overtake kept ones. */
export class PacketSender {
  /** Go peers queue packets by count and choke on large ones. */
  #dataBytesMax: number = GO_DATA_BYTES;

  constructor(
    private readonly body: CallBody,
    private readonly observer: PacketObserver,
  ) {}

  /** The peer is one of ours: packets may be as large as a frame. */
  widen(): void {
    this.#dataBytesMax = DATA_FRAME_BYTES;
  }

  /** Sends a packet other than DATA; what does not fit is kept. */
  send(packet: Packet): void {
    this.body.sendMessage(encodePacket(packet));
    this.observer.packetSent(packet.type, 0);
  }

  /**
   * Sends a small packet if there is any room, and asks for `onWritable` if
   * there is none. So no kept bytes ever stand before the status that may
   * follow.
   */
  sendIfRoom(packet: Packet): boolean {
    if (this.body.room === 0) {
      this.body.awaitRoom();
      return false;
    }
    this.send(packet);
    return true;
  }

  /**
   * Sends one DATA packet with the first bytes of `chunk` that fit.
   *
   * @returns How many; after 0 `onWritable` follows.
   */
  sendData(connectId: Int64, chunk: Uint8Array): number {
    const room = Math.min(this.body.room, DATA_FRAME_BYTES);
    if (room < CRAMPED_BYTES) return this.#sendCramped(connectId, chunk, room);
    const bytes = Math.min(
      chunk.length,
      this.#dataBytesMax,
      dataBytesThatFit(room, connectId),
    );
    const head = writeDataHead(connectId, bytes);
    this.body.sendFrame(
      head,
      bytes === chunk.length ? chunk : chunk.subarray(0, bytes),
    );
    this.observer.packetSent("DATA", bytes);
    return bytes;
  }

  /**
   * Sends the first part of `chunk` that fits, in as many packets as it takes.
   *
   * @returns How many bytes; after less than all `onWritable` follows.
   */
  sendStream(connectId: Int64, chunk: Uint8Array): number {
    let sent = 0;
    while (sent < chunk.length) {
      const rest = sent === 0 ? chunk : chunk.subarray(sent);
      const taken = this.sendData(connectId, rest);
      if (taken === 0) break;
      sent += taken;
    }
    return sent;
  }

  /** Sends all of `chunk`; what does not fit is kept. For early data only. */
  sendWhole(connectId: Int64, chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; at += GO_DATA_BYTES) {
      const data = chunk.subarray(at, at + GO_DATA_BYTES);
      this.body.sendMessage(encodePacket({ type: "DATA", connectId, data }));
      this.observer.packetSent("DATA", data.length);
    }
  }

  /** Sends one datagram as one packet, or drops and counts it. */
  sendDatagram(connectId: Int64, data: Uint8Array): void {
    const isTooMuch = data.length > GATHERED_DATAGRAM_BYTES_MAX ||
      this.body.keptBytes + data.length > DATAGRAM_KEPT_BYTES_MAX;
    if (isTooMuch) {
      this.observer.datagramDropped?.();
      return;
    }
    const fits = data.length > 0 &&
      dataBytesThatFit(this.body.room, connectId) >= data.length;
    if (fits) {
      this.body.sendFrame(writeDataHead(connectId, data.length), data);
    } else {
      this.body.sendMessage(encodePacket(
        data.length === 0
          ? { type: "DATA", connectId, data, emptyDatagram: true }
          : { type: "DATA", connectId, data },
      ));
    }
    this.observer.packetSent("DATA", data.length);
  }

  /** Asks for `onWritable`. */
  awaitRoom(): void {
    this.body.awaitRoom();
  }

  #sendCramped(connectId: Int64, chunk: Uint8Array, room: number): number {
    if (room === 0) {
      this.body.awaitRoom();
      return 0;
    }
    const data = chunk.subarray(0, CRAMPED_BYTES);
    this.body.sendMessage(encodePacket({ type: "DATA", connectId, data }));
    this.observer.packetSent("DATA", data.length);
    return data.length;
  }
}

// Puts datagrams together from the pieces of their DATA packets.

/** The longest UDP payload that IPv4 and IPv6 can carry, rounded up (RFC 768). */
const GATHERED_DATAGRAM_BYTES_MAX = 65_535;

/**
 * What a Go agent reads of a target's datagram at most; it drops the rest
 * without a sign, so one of this length is a part of a longer one.
 */
const GO_DATAGRAM_BYTES = 4_096;

export class DatagramGatherer {
  readonly #isCut: (datagram: Uint8Array) => boolean;
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  #isSkipping = false;

  /** @param cutsDatagrams The peer is a Go agent, see {@linkcode GO_DATAGRAM_BYTES}. */
  constructor(
    private readonly observer: PacketObserver,
    cutsDatagrams = false,
  ) {
    this.#isCut = ({ length }) => cutsDatagrams && length === GO_DATAGRAM_BYTES;
  }

  /** Counts a datagram that the owner had to drop. */
  drop(): void {
    this.observer.datagramDropped?.();
  }

  /**
   * Takes the next piece.
   *
   * @param leftBytes How much of the same packet is still to come.
   * @returns The datagram when it is complete; valid as long as `piece` is.
   *   A datagram over {@linkcode GATHERED_DATAGRAM_BYTES_MAX} is dropped and counted.
   */
  push(piece: Uint8Array, leftBytes: number): Uint8Array | undefined {
    const isLast = leftBytes === 0;
    if (this.#bytes === 0 && isLast && !this.#isSkipping) {
      if (piece.length <= GATHERED_DATAGRAM_BYTES_MAX) {
        return this.#whole(piece);
      }
    }
    if (this.#bytes + piece.length + leftBytes > GATHERED_DATAGRAM_BYTES_MAX) {
      this.#isSkipping = true;
    }
    if (this.#isSkipping) {
      this.#forget();
      if (isLast) {
        this.#isSkipping = false;
        this.observer.datagramDropped?.();
      }
      return undefined;
    }
    this.#pieces.push(piece.slice());
    this.#bytes += piece.length;
    if (!isLast) return undefined;
    const datagram = joinedBytes(this.#pieces);
    this.#forget();
    return this.#whole(datagram);
  }

  /** Half a datagram would be taken for a whole one: none is better. */
  #whole(datagram: Uint8Array): Uint8Array | undefined {
    if (!this.#isCut(datagram)) return datagram;
    this.observer.datagramDropped?.();
    this.observer.datagramCut?.();
    return undefined;
  }

  #forget(): void {
    this.#pieces = [];
    this.#bytes = 0;
  }
}
