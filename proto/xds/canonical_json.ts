/**
 * Messages of xDS as protobuf's JSON has them: enums by their names, durations
 * as `10s`, numbers that may be absent as numbers, the content of an `Any`
 * unpacked. So our dumps can be compared with those of others.
 *
 * Layer: xDS. Cold: for dumps.
 *
 * @module
 */

import protobuf from "protobufjs/light.js";
import {
  type Any,
  type Duration,
  SCHEMA,
  type Struct,
} from "./xds_messages.ts";
import { plainOf, type PlainValue } from "./struct_data.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Digits of a second's fraction: three, six or nine. */
const FRACTIONS = [3, 6, 9] as const;

/** Texts in JSON, because not every reader has 64-bit numbers. */
const WIDE: ReadonlySet<string> = new Set(["int64", "uint64", "sint64"]);

/**
 * The content of an `Any`, with its type in `@type`. Without a `.proto` text
 * for the type it is the raw value; `error` names a defect.
 */
export function canonicalJson({ typeUrl = "", value }: Any): PlainValue {
  const bytes = value ?? new Uint8Array(0);
  const type = SCHEMA.typeOfUrl(typeUrl);
  if (type === undefined) {
    return { "@type": typeUrl, value: bytes.toBase64() };
  }
  try {
    const message = type.toObject(type.decode(bytes), { longs: Number });
    return { "@type": typeUrl, ...messageJson(type, message) as object };
  } catch (error) {
    // Whatever protobufjs throws here is about the bytes.
    return { "@type": typeUrl, error: (error as Error).message };
  }
}

function messageJson(type: protobuf.Type, message: Fields): PlainValue {
  const special = SPECIAL.get(type.fullName);
  if (special !== undefined) return special(message);
  return Object.fromEntries(
    type.fieldsArray.filter(({ name }) => message[name] !== undefined)
      .map((field) => [jsonName(field), fieldJson(field, message[field.name])]),
  );
}

function fieldJson(field: protobuf.Field, value: unknown): PlainValue {
  if (field.map) {
    return Object.fromEntries(
      Object.entries(value as Fields)
        .map(([key, inner]) => [key, valueJson(field, inner)]),
    );
  }
  return field.repeated
    ? (value as readonly unknown[]).map((inner) => valueJson(field, inner))
    : valueJson(field, value);
}

function valueJson(
  { resolvedType, type }: protobuf.Field,
  value: unknown,
): PlainValue {
  if (resolvedType instanceof protobuf.Enum) {
    return resolvedType.valuesById[value as number] ?? value as number;
  }
  if (resolvedType !== null) return messageJson(resolvedType, value as Fields);
  if (value instanceof Uint8Array) return value.toBase64();
  return WIDE.has(type) ? String(value) : value as PlainValue;
}

/** `enforcing_consecutive_5xx` is `enforcingConsecutive5xx`. */
function jsonName({ name }: protobuf.Field): string {
  return name.replaceAll("_", "");
}

/** Messages with a special form in JSON. */
const SPECIAL: ReadonlyMap<string, (message: Fields) => PlainValue> = new Map([
  [".google.protobuf.Any", (any: Fields) => canonicalJson(any as Any)],
  [".google.protobuf.Duration", (one: Fields) => durationText(one as Duration)],
  [".google.protobuf.Struct", (one: Fields) => plainOf(one as Struct)],
  [
    ".google.protobuf.BoolValue",
    ({ value = false }: Fields) => value as PlainValue,
  ],
  [
    ".google.protobuf.UInt32Value",
    ({ value = 0 }: Fields) => value as PlainValue,
  ],
  [".google.protobuf.UInt64Value", ({ value = 0 }: Fields) => String(value)],
]);

/** `10s`, `0.250s`. */
function durationText({ seconds = 0, nanos = 0 }: Duration): string {
  if (nanos === 0) return `${seconds}s`;
  const digits = String(nanos).padStart(9, "0");
  const count = FRACTIONS.find((each) => /^0*$/.test(digits.slice(each)))!;
  return `${seconds}.${digits.slice(0, count)}s`;
}
