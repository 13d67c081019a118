/**
 * Puts datagrams together from the pieces of their DATA packets.
 *
 * @module
 */

import type { PacketObserver } from "./packet_observer.ts";

/** The longest UDP payload that IPv4 and IPv6 can carry, rounded up (RFC 768). */
export const GATHERED_DATAGRAM_BYTES_MAX = 65_535;

/**
 * What a Go agent reads of a target's datagram at most; it drops the rest
 * without a sign, so one of this length is a part of a longer one.
 */
export const GO_DATAGRAM_BYTES = 4_096;

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
    return isLast ? this.#whole(this.#join()) : undefined;
  }

  /** Half a datagram would be taken for a whole one: none is better. */
  #whole(datagram: Uint8Array): Uint8Array | undefined {
    if (!this.#isCut(datagram)) return datagram;
    this.observer.datagramDropped?.();
    this.observer.datagramCut?.();
    return undefined;
  }

  #join(): Uint8Array {
    const datagram = new Uint8Array(this.#bytes);
    let at = 0;
    for (const piece of this.#pieces) {
      datagram.set(piece, at);
      at += piece.length;
    }
    this.#forget();
    return datagram;
  }

  #forget(): void {
    this.#pieces = [];
    this.#bytes = 0;
  }
}
