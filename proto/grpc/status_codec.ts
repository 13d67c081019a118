/**
 * A status as header fields: `grpc-status` and `grpc-message`, which is UTF-8
 * text, percent-encoded (PROTOCOL-HTTP2, "Status-Message").
 *
 * @module
 */

import { knownCode } from "../codes/codes.ts";
import type { HeaderField } from "../hpack/header_field.ts";
import { type Status, StatusCode } from "./status.ts";

/**
 * The trailer, the metadata field of a failed dial, and the header of a refused
 * CONNECT with the code of the problem; ours, and ignored by others.
 */
export const CODE_FIELD = "tunnel-code";

const CODES: ReadonlySet<number> = new Set(Object.values(StatusCode));

/** Appends the fields of `status`. */
export function appendStatus(fields: HeaderField[], status: Status): void {
  fields.push({ name: "grpc-status", value: String(status.code) });
  if (status.tunnelCode !== undefined) {
    fields.push({ name: CODE_FIELD, value: status.tunnelCode });
  }
  if (status.message === "") return;
  fields.push({
    name: "grpc-message",
    value: encodeStatusMessage(status.message),
  });
}

/**
 * The status that `fields` carry; `undefined` without a `grpc-status`. A code
 * that is no number or that gRPC does not have becomes UNKNOWN.
 */
export function readStatus(fields: readonly HeaderField[]): Status | undefined {
  const text = fieldValue(fields, "grpc-status");
  if (text === undefined) return undefined;
  const message = decodeStatusMessage(fieldValue(fields, "grpc-message") ?? "");
  const code = /^[0-9]{1,3}$/.test(text) ? Number(text) : -1;
  if (CODES.has(code)) {
    const tunnelCode = knownCode(fieldValue(fields, CODE_FIELD) ?? "");
    return { code: code as StatusCode, message, tunnelCode };
  }
  const quoted = JSON.stringify(text);
  return {
    code: StatusCode.UNKNOWN,
    message: `Cannot tell what grpc-status ${quoted} means: ${message}`,
  };
}

/** The first value of `name` in `fields`. */
export function fieldValue(
  fields: readonly HeaderField[],
  name: string,
): string | undefined {
  for (let at = 0; at < fields.length; at++) {
    if (fields[at]!.name === name) return fields[at]!.value;
  }
  return undefined;
}

/**
 * The longest encoded message that is sent. Trailers count towards the peer's
 * header list limit, which is 8 KiB in several implementations: a longer text
 * would cost the peer the whole status.
 */
export const STATUS_MESSAGE_BYTES_MAX = 4096;

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/** Encodes `message`; a longer one than {@linkcode STATUS_MESSAGE_BYTES_MAX} is cut. */
export function encodeStatusMessage(message: string): string {
  if (/^[ -$&-~]*$/.test(message)) {
    return message.slice(0, STATUS_MESSAGE_BYTES_MAX);
  }
  let encoded = "";
  for (const character of message) {
    const piece = encodeCharacter(character);
    if (encoded.length + piece.length > STATUS_MESSAGE_BYTES_MAX) break;
    encoded += piece;
  }
  return encoded;
}

function encodeCharacter(character: string): string {
  if (character >= " " && character <= "~" && character !== "%") {
    return character;
  }
  let encoded = "";
  for (const byte of ENCODER.encode(character)) {
    encoded += "%" + byte.toString(16).toUpperCase().padStart(2, "0");
  }
  return encoded;
}

/**
 * Decodes what a peer sent. Never fails: the specification forbids to lose a
 * status over its text, so broken escapes stay as they are and bytes that are
 * no UTF-8 become U+FFFD.
 *
 * @param value The header value, bytes as code points 0–255.
 */
export function decodeStatusMessage(value: string): string {
  if (/^[ -$&-~]*$/.test(value)) return value;
  const bytes = new Uint8Array(value.length);
  let length = 0;
  for (let index = 0; index < value.length; index++) {
    const escaped = value.slice(index, index + 3);
    if (/^%[0-9a-fA-F]{2}$/.test(escaped)) {
      bytes[length++] = Number.parseInt(escaped.slice(1), 16);
      index += 2;
    } else {
      bytes[length++] = value.charCodeAt(index);
    }
  }
  return DECODER.decode(bytes.subarray(0, length));
}
