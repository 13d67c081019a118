/**
 * A gRPC body to packets, byte by byte as it arrives.
 *
 * The payload of DATA is passed on in the pieces that arrive and is never
 * gathered, so a message needs no memory, whatever its size. All other packets
 * are small; they are gathered under a limit of theirs. DATA in an order that
 * no known encoder writes is gathered too, and accepted.
 *
 * Credit: every byte pushed is either payload, which its consumer credits, or
 * overhead, which is reported at once. Together they are all bytes of every
 * complete message.
 *
 * @module
 */

import { decodePacket } from "./packet_codec.ts";
import { type Data, type Int64, type Packet, PacketError } from "./packet.ts";
import { MESSAGE_PREFIX_BYTES } from "../grpc/message_reader.ts";
import { DataHead, PACKET_HEAD_BYTES_MAX } from "./data_head.ts";

/**
 * Largest message accepted by default. Go clients send the bytes of one `Write`
 * as one DATA packet, so megabytes are common.
 */
export const PACKET_MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Largest packet that is not DATA: an address, an error text and identifiers.
 * It bounds what a peer can make us gather with announced lengths.
 */
export const COLD_PACKET_BYTES_MAX = 65_536;

/**
 * Bytes of a gathered message that stay uncredited until it is complete. Less
 * than every window we grant, or the rest of the message could not arrive.
 */
const WITHHELD_BYTES_MAX = 8_192;

/** First size of the gathering buffer; it doubles as bytes really arrive. */
const GATHER_BYTES_MIN = 1_024;

const NO_BYTES = new Uint8Array(0);

/** What comes out of a {@linkcode PacketReader}. */
export interface PacketReaderEvents {
  /** A packet other than DATA, unknown types included. */
  onPacket(packet: Exclude<Packet, Data>): void;
  /**
   * A piece of a DATA packet's payload.
   *
   * @param connectId Its connection; 0 when the packet has none.
   * @param piece A view that is valid only during the call; empty exactly when
   *   the packet has no payload.
   * @param leftBytes What is still to come of this packet.
   */
  onData(connectId: Int64, piece: Uint8Array, leftBytes: number): void;
  /** A datagram of no bytes (ours). Without this listener it is dropped. */
  onEmptyDatagram?(connectId: Int64): void;
  /** So many bytes were not payload: credit them now. */
  onOverhead(bytes: number): void;
}

/** Limits of a {@linkcode PacketReader}. */
interface PacketReaderOptions {
  /** Largest message, payload included; {@linkcode PACKET_MESSAGE_BYTES_MAX}. */
  readonly messageBytesMax?: number | undefined;
}

type Phase =
  /** Inside the five bytes of the gRPC prefix. */
  | "prefix"
  /** Inside a packet head that may turn out to be DATA. */
  | "head"
  /** Inside the payload of DATA. */
  | "data"
  /** Inside a message that is decoded as a whole. */
  | "gather"
  /** A message could not be understood; its end cannot be trusted. */
  | "failed";

export class PacketReader {
  readonly #messageBytesMax: number;
  readonly #head = new DataHead();
  /** A head that straddles chunks; owned only then, for idle readers are many. */
  #headBytes = NO_BYTES;

  #phase: Phase = "prefix";
  /** Bytes of the prefix or of the head that have been seen. */
  #filled = 0;
  #flag = 0;
  #messageBytes = 0;
  /** Payload bytes still to come. */
  #left = 0;
  #gathered = NO_BYTES;
  #gatheredBytes = 0;
  /** Bytes of the current message that were credited before its end. */
  #creditedEarly = 0;
  /** Bytes credited as overhead that turned out to be payload. */
  #creditDebt = 0;

  constructor(
    private readonly events: PacketReaderEvents,
    options: PacketReaderOptions = {},
  ) {
    this.#messageBytesMax = options.messageBytesMax ?? PACKET_MESSAGE_BYTES_MAX;
  }

  /** False while a message is incomplete: a body that ends now is cut off. */
  get isBetweenMessages(): boolean {
    return this.#phase === "prefix" && this.#filled === 0;
  }

  /**
   * Takes the next bytes of the body, cut anywhere.
   *
   * @param chunk Only read during the call.
   * @throws {PacketError} If the peer sent something else than packets or went
   *   over a limit. The reader is spent then.
   */
  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length) {
      switch (this.#phase) {
        case "prefix":
          at = this.#readPrefix(chunk, at);
          break;
        case "head":
          at = this.#readHead(chunk, at);
          break;
        case "data":
          at = this.#passData(chunk, at);
          break;
        case "gather":
          at = this.#gather(chunk, at);
          break;
        case "failed":
          throw new PacketError("Cannot read packets: an earlier one was bad");
      }
    }
  }

  #readPrefix(chunk: Uint8Array, start: number): number {
    let at = start;
    while (this.#filled < MESSAGE_PREFIX_BYTES && at < chunk.length) {
      const byte = chunk[at++]!;
      if (this.#filled === 0) {
        this.#flag = byte;
        this.#messageBytes = 0;
      } else {
        this.#messageBytes = this.#messageBytes * 256 + byte;
      }
      this.#filled++;
    }
    if (this.#filled === MESSAGE_PREFIX_BYTES) this.#startMessage();
    return at;
  }

  #startMessage(): void {
    this.#filled = 0;
    if (this.#flag !== 0) {
      // Inflated payload could not be accounted for in the bytes of the body:
      // a few bytes would buy a peer megabytes of window.
      this.#fail(
        this.#flag === 1
          ? "Cannot read a packet: it is compressed, wanted it as it is"
          : `Cannot read a packet: the compressed flag is ${this.#flag}, ` +
            "wanted 0 or 1",
      );
    }
    this.#requireAtMost(this.#messageBytesMax, "the limit for one message is");
    this.#phase = "head";
    if (this.#messageBytes === 0) this.#finish(NO_BYTES, 0);
  }

  #readHead(chunk: Uint8Array, at: number): number {
    const seen = this.#filled;
    if (seen === 0) {
      const outcome = this.#head.parse(
        chunk,
        at,
        chunk.length,
        this.#messageBytes,
      );
      if (outcome === "more") return this.#keepHead(chunk, at);
      return this.#endHead(outcome, at);
    }
    // The head straddles chunks, which is rare: parse it again from the start.
    this.#keepHead(chunk, at);
    const outcome = this.#head.parse(
      this.#headBytes,
      0,
      this.#filled,
      this.#messageBytes,
    );
    if (outcome === "more") return at + this.#filled - seen;
    this.#filled = seen;
    return this.#endHead(outcome, at);
  }

  #keepHead(chunk: Uint8Array, at: number): number {
    const count = Math.min(
      PACKET_HEAD_BYTES_MAX - this.#filled,
      chunk.length - at,
    );
    if (this.#headBytes.length === 0) {
      this.#headBytes = new Uint8Array(PACKET_HEAD_BYTES_MAX);
    }
    this.#headBytes.set(chunk.subarray(at, at + count), this.#filled);
    this.#filled += count;
    return at + count;
  }

  /** Goes on behind the head, of which `#filled` bytes lie before `at`. */
  #endHead(outcome: "data" | "other", at: number): number {
    const seen = this.#filled;
    this.#filled = 0;
    if (outcome === "data") {
      const { headBytes, dataBytes, connectId } = this.#head;
      this.#left = dataBytes;
      this.#phase = dataBytes === 0 ? "prefix" : "data";
      this.#credit(MESSAGE_PREFIX_BYTES + headBytes);
      this.#headBytes = NO_BYTES;
      if (dataBytes === 0) this.events.onData(connectId, NO_BYTES, 0);
      return at + headBytes - seen;
    }
    if (!this.#head.isLikeData) {
      this.#requireAtMost(
        COLD_PACKET_BYTES_MAX,
        "the limit for anything but DATA is",
      );
    }
    this.#phase = "gather";
    if (seen > 0) this.#append(this.#headBytes.subarray(0, seen));
    this.#headBytes = NO_BYTES;
    return at;
  }

  #passData(chunk: Uint8Array, at: number): number {
    const count = Math.min(this.#left, chunk.length - at);
    const piece = count === chunk.length
      ? chunk
      : chunk.subarray(at, at + count);
    this.#left -= count;
    if (this.#left === 0) this.#phase = "prefix";
    this.events.onData(this.#head.connectId, piece, this.#left);
    return at + count;
  }

  #gather(chunk: Uint8Array, at: number): number {
    const wanted = this.#messageBytes - this.#gatheredBytes;
    const count = Math.min(wanted, chunk.length - at);
    if (count === this.#messageBytes) {
      this.#finish(chunk, at); // whole in one chunk: no need to copy it
    } else {
      this.#append(chunk.subarray(at, at + count));
      if (count === wanted) {
        const message = this.#gathered;
        this.#gathered = NO_BYTES;
        this.#gatheredBytes = 0;
        this.#finish(message, 0);
      }
    }
    return at + count;
  }

  #append(piece: Uint8Array): void {
    const filled = this.#gatheredBytes + piece.length;
    if (filled > this.#gathered.length) {
      const doubled = Math.max(filled * 2, GATHER_BYTES_MIN);
      const grown = new Uint8Array(Math.min(doubled, this.#messageBytes));
      grown.set(this.#gathered.subarray(0, this.#gatheredBytes));
      this.#gathered = grown;
    }
    this.#gathered.set(piece, this.#gatheredBytes);
    this.#gatheredBytes = filled;
    // A message larger than the window would never arrive if its bytes were
    // credited only at its end.
    const early = filled - this.#creditedEarly - WITHHELD_BYTES_MAX;
    if (early > 0) {
      this.#creditedEarly += early;
      this.#credit(early);
    }
  }

  /** The message begins at `at`. */
  #finish(bytes: Uint8Array, at: number): void {
    const packet = this.#decode(bytes, at);
    const dataBytes = packet.type === "DATA" ? packet.data.length : 0;
    const overhead = MESSAGE_PREFIX_BYTES + this.#messageBytes - dataBytes -
      this.#creditedEarly;
    this.#creditedEarly = 0;
    this.#phase = "prefix";
    this.#credit(overhead);
    if (packet.type !== "DATA") this.events.onPacket(packet);
    else if (packet.emptyDatagram) {
      this.events.onEmptyDatagram?.(packet.connectId);
    } else this.events.onData(packet.connectId, packet.data, 0);
  }

  #decode(bytes: Uint8Array, at: number): Packet {
    try {
      return decodePacket(bytes, at, at + this.#messageBytes);
    } catch (error) {
      this.#phase = "failed";
      throw error;
    }
  }

  /**
   * Reports overhead, less the bytes that were credited early and turned out to
   * be payload.
   *
   * The consumer credits that payload a second time, so a debt is window that
   * the peer gained. It is never more than one message: the next one's early
   * credit pays it back first.
   */
  #credit(bytes: number): void {
    const balance = bytes - this.#creditDebt;
    this.#creditDebt = Math.max(0, -balance);
    if (balance > 0) this.events.onOverhead(balance);
  }

  #requireAtMost(limit: number, words: string): void {
    if (this.#messageBytes > limit) {
      this.#fail(
        `Cannot read a packet of ${this.#messageBytes} bytes: ` +
          `${words} ${limit}`,
      );
    }
  }

  #fail(message: string): never {
    this.#phase = "failed";
    throw new PacketError(message);
  }
}
