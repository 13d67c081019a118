/**
 * The bytes in front of a DATA packet's payload, written and read in place
 * (SPEC.md, "DATA").
 *
 * Everything a tunnel moves is DATA, so its payload is never copied into a
 * message: the head goes out in front of the payload in one HTTP/2 frame, and
 * coming in the payload is passed on while it arrives. Both need the head
 * alone, which is at most 49 bytes with the gRPC prefix.
 *
 * @module
 */

import {
  MESSAGE_PREFIX_BYTES,
  writeMessagePrefix,
} from "../grpc/message_reader.ts";
import {
  int64FromBits,
  varint32Bytes,
  VARINT_BYTES_MAX,
  varintBytes,
  writeVarint,
} from "./int64.ts";
import type { Int64 } from "./packet.ts";

/** The longest head that {@linkcode writeDataHead} writes. */
export const DATA_HEAD_BYTES_MAX = MESSAGE_PREFIX_BYTES + 2 + 1 + 5 + 1 +
  VARINT_BYTES_MAX + 1 + 5;

/** The longest packet head (without prefix) that is still read in place. */
export const PACKET_HEAD_BYTES_MAX = 4 * (1 + VARINT_BYTES_MAX);

/**
 * Head and payload of one DATA packet between our own ends. Smaller frames cost
 * CPU for nothing; larger ones make the other streams wait.
 */
export const DATA_FRAME_BYTES = 65_536;

/**
 * Payload of one DATA packet toward Go peers. They refuse a message above
 * 4 MiB, and with it the whole stream, and queue packets by count, so that
 * larger ones only grow their queues.
 */
export const GO_DATA_BYTES = 32_768;

/** The type of DATA, in field 1 of `Packet`. */
const DATA_TYPE = 4;

// Tags: field number << 3 | wire type.
const TYPE_TAG = 0x08;
const DATA_TAG = 0x22;
const CONNECT_ID_TAG = 0x08;
const PAYLOAD_TAG = 0x1a;

const scratch = new Uint8Array(DATA_HEAD_BYTES_MAX);
/** One view per possible length, so that a head costs no allocation. */
const heads = Array.from(
  { length: DATA_HEAD_BYTES_MAX + 1 },
  (_, length) => scratch.subarray(0, length),
);

/**
 * Writes the bytes before a payload of `dataBytes` bytes: gRPC prefix and
 * packet head.
 *
 * @param connectId 0 is left out, as proto3 does.
 * @param dataBytes 0 gives the empty DATA, which is complete as it is.
 * @returns A shared scratch: valid until the next call.
 */
export function writeDataHead(
  connectId: Int64,
  dataBytes: number,
): Uint8Array {
  const innerBytes = innerHeadBytes(connectId, dataBytes) + dataBytes;
  const messageBytes = 3 + varint32Bytes(innerBytes) + innerBytes;
  if (!(dataBytes >= 0 && messageBytes < 2 ** 32)) {
    throw new RangeError(
      `Cannot write a DATA head: ${dataBytes} bytes fit no gRPC message`,
    );
  }
  writeMessagePrefix(scratch, messageBytes);
  scratch[5] = TYPE_TAG;
  scratch[6] = DATA_TYPE;
  scratch[7] = DATA_TAG;
  let at = writeVarint(scratch, 8, innerBytes);
  if (connectId !== 0) {
    scratch[at] = CONNECT_ID_TAG;
    at = writeVarint(scratch, at + 1, connectId);
  }
  if (dataBytes > 0) {
    scratch[at] = PAYLOAD_TAG;
    at = writeVarint(scratch, at + 1, dataBytes);
  }
  return heads[at]!;
}

/** The length of what {@linkcode writeDataHead} would return. */
export function dataHeadBytes(connectId: Int64, dataBytes: number): number {
  const innerHead = innerHeadBytes(connectId, dataBytes);
  return MESSAGE_PREFIX_BYTES + 3 + varint32Bytes(innerHead + dataBytes) +
    innerHead;
}

/**
 * How many payload bytes fit in a frame together with their head.
 *
 * @param frameBytes What head and payload may take, such as `Stream.room`.
 * @returns 0 when not even one fits.
 */
export function dataBytesThatFit(
  frameBytes: number,
  connectId: Int64,
): number {
  return Math.max(0, frameBytes - dataHeadBytes(connectId, frameBytes));
}

function innerHeadBytes(connectId: Int64, dataBytes: number): number {
  const identifier = connectId === 0 ? 0 : 1 + varintBytes(connectId);
  return identifier + (dataBytes === 0 ? 0 : 1 + varint32Bytes(dataBytes));
}

/**
 * What {@linkcode DataHead.parse} saw:
 * - `more`: the bytes end inside the head;
 * - `data`: a DATA packet in the order every encoder writes, payload last;
 * - `other`: anything else, to be gathered and decoded as a whole. Malformed
 *   bytes too: the full decoder makes the error.
 */
type DataHeadOutcome = "more" | "data" | "other";

/** Reads packet heads. One per reader; it keeps no memory between calls. */
export class DataHead {
  /** After `data`: the conduit of the bytes that follow. */
  connectId: Int64 = 0;
  /** After `data`: bytes of the head. */
  headBytes = 0;
  /** After `data`: bytes of payload, which end the message. */
  dataBytes = 0;
  /** After `other`: the packet starts like a DATA packet nevertheless. */
  isLikeData = false;

  // Results of #varint.
  #low = 0;
  #high = 0;

  /**
   * Looks at the start of a message.
   *
   * @param bytes Where the bytes are, from `start` to `end`.
   * @param messageBytes Length of the message, which may end beyond `end`.
   */
  parse(
    bytes: Uint8Array,
    start: number,
    end: number,
    messageBytes: number,
  ): DataHeadOutcome {
    const messageEnd = start + messageBytes;
    const limit = Math.min(end, messageEnd);
    const cutOff = messageEnd > end ? "more" : "other";
    this.isLikeData = false;
    if (start >= limit) return cutOff;
    if (bytes[start] !== TYPE_TAG) {
      this.isLikeData = bytes[start] === DATA_TAG;
      return "other";
    }
    let at = this.#varint(bytes, start + 1, limit);
    if (at <= 0) return at === CUT_OFF ? cutOff : "other";
    if (this.#low !== DATA_TYPE || this.#high !== 0) return "other";
    this.isLikeData = true;

    if (at >= limit) return cutOff;
    if (bytes[at] !== DATA_TAG) return "other";
    at = this.#varint(bytes, at + 1, limit);
    if (at <= 0) return at === CUT_OFF ? cutOff : "other";
    if (this.#high !== 0 || at + this.#low !== messageEnd) return "other";

    this.connectId = 0;
    if (at === messageEnd) return this.#found(at - start, 0);
    if (at >= limit) return cutOff;
    if (bytes[at] === CONNECT_ID_TAG) {
      at = this.#varint(bytes, at + 1, limit);
      if (at <= 0) return at === CUT_OFF ? cutOff : "other";
      this.connectId = int64FromBits(this.#low, this.#high);
      if (at === messageEnd) return this.#found(at - start, 0);
      if (at >= limit) return cutOff;
    }
    if (bytes[at] !== PAYLOAD_TAG) return "other";
    at = this.#varint(bytes, at + 1, limit);
    if (at <= 0) return at === CUT_OFF ? cutOff : "other";
    if (this.#high !== 0 || at + this.#low !== messageEnd) return "other";
    return this.#found(at - start, this.#low);
  }

  #found(headBytes: number, dataBytes: number): DataHeadOutcome {
    this.headBytes = headBytes;
    this.dataBytes = dataBytes;
    return "data";
  }

  /**
   * Reads a varint of any width.
   *
   * @returns The offset behind it, {@linkcode CUT_OFF} or {@linkcode ENDLESS}.
   */
  #varint(bytes: Uint8Array, start: number, limit: number): number {
    let low = 0;
    let high = 0;
    for (let index = 0; index < VARINT_BYTES_MAX; index++) {
      const at = start + index;
      if (at >= limit) return CUT_OFF;
      const byte = bytes[at]!;
      const bits = byte & 0x7f;
      const shift = index * 7;
      if (shift < 28) low |= bits << shift;
      else if (shift === 28) {
        low |= bits << 28;
        high = bits >>> 4;
      } else high |= bits << (shift - 32);
      if (byte < 0x80) {
        this.#low = low >>> 0;
        this.#high = high >>> 0;
        return at + 1;
      }
    }
    return ENDLESS;
  }
}

/** The bytes end inside a varint. No real offset is 0 or below. */
const CUT_OFF = 0;
/** A varint of more than ten bytes. */
const ENDLESS = -1;
