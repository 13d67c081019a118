/**
 * A status as header fields: `grpc-status` and `grpc-message`.
 *
 * @module
 */

import type { HeaderField } from "../hpack/header_field.ts";
import { type Status, StatusCode } from "./status.ts";
import { decodeStatusMessage, encodeStatusMessage } from "./status_message.ts";

const CODES: ReadonlySet<number> = new Set(Object.values(StatusCode));

/** Appends the fields that say `status`. */
export function appendStatus(fields: HeaderField[], status: Status): void {
  fields.push({ name: "grpc-status", value: String(status.code) });
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
  if (CODES.has(code)) return { code: code as StatusCode, message };
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
  for (const field of fields) {
    if (field.name === name) return field.value;
  }
  return undefined;
}
