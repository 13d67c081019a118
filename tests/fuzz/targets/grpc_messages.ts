/**
 * gRPC framing: the messages that come out depend on the bytes alone, a limit
 * is a limit also after decompression, and nothing but `GrpcError` is thrown.
 * The first byte of an input says whether the body is declared as gzip.
 *
 * @module
 */

import { joinedBytes } from "../../../proto/bytes/byte_arrays.ts";
import { assert, assertEquals } from "@std/assert";
import { gunzipSync, gzipSync } from "node:zlib";
import {
  MESSAGE_PREFIX_BYTES,
  MessageReader,
} from "../../../proto/grpc/message_reader.ts";
import { GrpcError, StatusCode } from "../../../proto/grpc/status.ts";
import { cut, prngOf } from "../cutting.ts";
import type { FuzzTarget } from "../target.ts";

/** Small, so that the limit is met. */
const MESSAGE_BYTES_MAX = 200;

/** The bytes of one message with its prefix. */
export function framed(payload: Uint8Array, flag = 0): Uint8Array {
  const { length } = payload;
  const prefix = [flag, length >>> 24, length >>> 16, length >>> 8, length];
  return Uint8Array.of(...prefix, ...payload);
}

/** Cuts behind every message, by the lengths that the prefixes claim. */
export function splitMessages(input: Uint8Array): Uint8Array[] {
  const messages: Uint8Array[] = [];
  for (let at = 0; at < input.length;) {
    let length = 0;
    for (let index = 1; index < MESSAGE_PREFIX_BYTES; index++) {
      length = length * 256 + (input[at + index] ?? 0);
    }
    const end = at + MESSAGE_PREFIX_BYTES + length;
    messages.push(input.subarray(at, end));
    at = end;
  }
  return messages;
}

/** Writes the true length into a message's prefix. */
export function repairMessage(record: Uint8Array): Uint8Array {
  if (record.length < MESSAGE_PREFIX_BYTES) return record;
  return framed(record.subarray(MESSAGE_PREFIX_BYTES), record[0]);
}

const HELLO = new TextEncoder().encode("hello");
const ENCODINGS = ["identity", "gzip", "snappy"] as const;

/** See the module description. */
export const GRPC_MESSAGES: FuzzTarget = {
  name: "grpc_messages",
  seeds: [
    body(0, framed(HELLO), framed(new Uint8Array(0)), framed(HELLO)),
    body(1, framed(gzip(HELLO), 1), framed(HELLO), framed(gzip(HELLO), 1)),
    body(1, framed(gzip(new Uint8Array(MESSAGE_BYTES_MAX + 1)), 1)),
    body(0, framed(new Uint8Array(MESSAGE_BYTES_MAX))),
    body(2, framed(HELLO, 1)),
  ],
  dictionary: [
    Uint8Array.of(0, 0, 0, 0, 0),
    Uint8Array.of(1, 0xff, 0xff, 0xff, 0xff),
    gzip(HELLO),
  ],
  split: ([encoding, ...rest]) =>
    encoding === undefined ? [] : [
      Uint8Array.of(encoding),
      ...splitMessages(Uint8Array.from(rest)),
    ],
  repair: repairMessage,

  run(input) {
    const encoding = ENCODINGS[(input[0] ?? 0) % ENCODINGS.length]!;
    const bytes = input.subarray(1);
    const whole = read([bytes.slice()], encoding);
    assertEquals(read(cut(bytes, prngOf(input)), encoding), whole);
    assertEquals(whole, readNaively(bytes, encoding));
    return whole.map((seen) => seen.slice(0, 16)).slice(0, 6).join();
  },
};

function body(
  encoding: number,
  ...messages: readonly Uint8Array[]
): Uint8Array {
  return joinedBytes([Uint8Array.of(encoding), ...messages]);
}

function gzip(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(gzipSync(bytes));
}

function read(chunks: readonly Uint8Array[], encoding: string): string[] {
  const seen: string[] = [];
  const reader = new MessageReader({
    messageBytesMax: MESSAGE_BYTES_MAX,
    encoding,
    onMessage(message) {
      assert(message.length <= MESSAGE_BYTES_MAX);
      seen.push(`message ${message.toHex()}`);
    },
  });
  try {
    for (const chunk of chunks) {
      reader.push(chunk);
      chunk.fill(0xaa); // Nothing that was kept may still look at the chunk.
      assert(reader.bufferBytes <= MESSAGE_BYTES_MAX);
    }
    reader.end();
    seen.push("end");
  } catch (error) {
    if (!(error instanceof GrpcError)) throw error;
    seen.push(`status ${error.code}`);
  }
  return seen;
}

/** The same from whole messages, one after the other. */
function readNaively(bytes: Uint8Array, encoding: string): string[] {
  const seen: string[] = [];
  for (const message of splitMessages(bytes)) {
    if (message.length < MESSAGE_PREFIX_BYTES) {
      return [...seen, `status ${StatusCode.INTERNAL}`];
    }
    const flag = message[0]!;
    const payload = message.subarray(MESSAGE_PREFIX_BYTES);
    const announced = new DataView(message.buffer, message.byteOffset)
      .getUint32(1);
    const problem = prefixProblem(flag, announced, encoding) ??
      (payload.length < announced ? StatusCode.INTERNAL : undefined);
    if (problem !== undefined) return [...seen, `status ${problem}`];
    const plain = flag === 0 ? payload : unfold(payload);
    if (typeof plain === "number") return [...seen, `status ${plain}`];
    seen.push(`message ${plain.toHex()}`);
  }
  return [...seen, "end"];
}

function prefixProblem(
  flag: number,
  announced: number,
  encoding: string,
): number | undefined {
  if (flag > 1) return StatusCode.INTERNAL;
  if (flag === 1 && encoding === "identity") return StatusCode.INTERNAL;
  if (flag === 1 && encoding !== "gzip") return StatusCode.UNIMPLEMENTED;
  if (announced > MESSAGE_BYTES_MAX) return StatusCode.RESOURCE_EXHAUSTED;
  return undefined;
}

/** Without a limit while it unfolds: the inputs are small. */
function unfold(payload: Uint8Array): Uint8Array | number {
  let plain: Uint8Array;
  try {
    plain = new Uint8Array(gunzipSync(payload));
  } catch {
    return StatusCode.INTERNAL; // Whatever zlib says, it is not gzip.
  }
  return plain.length > MESSAGE_BYTES_MAX
    ? StatusCode.RESOURCE_EXHAUSTED
    : plain;
}
