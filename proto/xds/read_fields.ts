/**
 * Reads fields of messages that are walked by hand.
 *
 * Layer: xDS.
 *
 * @module
 */

import type protobuf from "protobufjs/minimal.js";
import { GrpcError, StatusCode } from "../grpc/status.ts";

const SHORT_TEXT_BYTES = 96;
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * The bytes of the field whose tag has just been read, as a view.
 *
 * @throws {RangeError} When the field is cut short.
 */
export function readView(reader: protobuf.Reader): Uint8Array {
  const length = reader.size();
  const start = reader.pos;
  if (length > reader.len - start) {
    throw new RangeError(
      `a field claims ${length} bytes, ${reader.len - start} are left`,
    );
  }
  reader.pos = start + length;
  return reader.buf.subarray(start, start + length);
}

/**
 * The readers answer malformed bytes with errors of their own, and nothing else
 * in there can fail.
 */
export function malformed(
  what: "request" | "response",
  { length }: Uint8Array,
  error: unknown,
): GrpcError {
  return new GrpcError(
    StatusCode.INVALID_ARGUMENT,
    `Cannot read a discovery ${what} of ${length} bytes: ${
      (error as Error).message
    }`,
  );
}

/** @throws {TypeError} When `bytes` are not UTF-8. */
export function readText(bytes: Uint8Array): string {
  // Names and versions are ASCII; the platform's decoder takes longer to call
  // than a short loop to run.
  if (bytes.length <= SHORT_TEXT_BYTES && isAscii(bytes)) {
    return String.fromCharCode.apply(null, bytes as unknown as number[]);
  }
  return UTF8.decode(bytes);
}

function isAscii(bytes: Uint8Array): boolean {
  let all = 0;
  for (let at = 0; at < bytes.length; at++) all |= bytes[at]!;
  return all < 0x80;
}
