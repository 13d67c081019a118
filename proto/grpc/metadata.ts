/**
 * gRPC custom metadata: an ordered multi-map with lower-case ASCII names.
 *
 * @module
 */

import {
  type HeaderField,
  ListMemo,
  SHARED_LISTS_MAX,
} from "../hpack/header_field.ts";
import { GrpcError, StatusCode } from "./status.ts";

/** Text, or bytes when the name ends in `-bin`. */
type MetadataValue = string | Uint8Array;

/** The usual result; it stays empty. */
const NO_VALUES: MetadataValue[] = [];
const NO_TEXTS: readonly string[] = [];

export class Metadata {
  readonly #entries: (readonly [string, MetadataValue])[] = [];

  /** @param initial Names and values, set one by one. */
  constructor(initial: Readonly<Record<string, MetadataValue>> = {}) {
    for (const [name, value] of Object.entries(initial)) this.add(name, value);
  }

  /**
   * Freezes the metadata, so that it can be shared and derived facts can be
   * cached.
   *
   * @returns This.
   */
  freeze(): this {
    Object.freeze(this.#entries);
    return this;
  }

  get isFrozen(): boolean {
    return Object.isFrozen(this.#entries);
  }

  /**
   * Adds one value; earlier ones of the same name stay.
   *
   * @throws {TypeError} When this is final.
   */
  add(name: string, value: MetadataValue): void {
    this.#entries.push([name.toLowerCase(), value]);
  }

  /** All values of `name`, in order. */
  all(name: string): readonly MetadataValue[] {
    const wanted = name.toLowerCase();
    const entries = this.#entries;
    let values = NO_VALUES;
    for (let at = 0; at < entries.length; at++) {
      if (entries[at]![0] !== wanted) continue;
      if (values === NO_VALUES) values = [];
      values.push(entries[at]![1]);
    }
    return values;
  }

  /** All text values of `name`, in order. */
  texts(name: string): readonly string[] {
    const values = this.all(name);
    if (values === NO_VALUES) return NO_TEXTS;
    return values.filter((value) => typeof value === "string");
  }

  /**
   * The first text value of `name`. A loop by places, which makes nothing: every
   * call uses this a few times.
   */
  text(name: string): string | undefined {
    const wanted = name.toLowerCase();
    const entries = this.#entries;
    for (let at = 0; at < entries.length; at++) {
      const entry = entries[at]!;
      if (entry[0] === wanted && typeof entry[1] === "string") return entry[1];
    }
    return undefined;
  }

  /** The token that came with a call; empty without one. */
  get bearerToken(): string {
    const value = this.text("authorization") ?? "";
    return value.startsWith("Bearer ") ? value.slice("Bearer ".length) : "";
  }

  [Symbol.iterator](): Iterator<readonly [string, MetadataValue]> {
    return this.#entries[Symbol.iterator]();
  }
}

// Header fields to metadata and back (PROTOCOL-HTTP2, "Custom-Metadata").
//
// Layer: gRPC. Text values are printable ASCII, values of names that end in
// `-bin` are bytes in base64. What HTTP/2 and gRPC keep for themselves never
// crosses in either direction, so that metadata of one call can be handed to
// another as it is.

/** Names that are no custom metadata, besides pseudo fields and `grpc-…`. */
const RESERVED_NAMES: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "content-type",
  "host",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Secrets: kept out of every HPACK table on the way (RFC 7541 §7.1.3). */
const SECRET_NAMES: ReadonlySet<string> = new Set([
  "authorization",
  "cookie",
  "proxy-authorization",
]);

const NAME = /^[0-9a-z_.-]+$/;
const TEXT_VALUE = /^[ -~]*$/;

/**
 * Reads the metadata out of a header section or trailers.
 *
 * Text values that gRPC does not allow (control or non-ASCII bytes) are left
 * out: they could not be sent on. `grpc-encoding` stays readable, because the
 * reader of the messages needs it.
 *
 * @throws {GrpcError} INTERNAL when a `-bin` value is not base64.
 */
export function decodeMetadata(fields: readonly HeaderField[]): Metadata {
  const known = DECODED.get(fields);
  if (known !== undefined) return known;
  const metadata = decodeNewMetadata(fields).freeze();
  DECODED.set(fields, metadata);
  return metadata;
}

/** Cache for lists that repeat, shared by all connections. */
const DECODED = new ListMemo<Metadata>(SHARED_LISTS_MAX);

function decodeNewMetadata(fields: readonly HeaderField[]): Metadata {
  const metadata = new Metadata();
  for (const { name, value } of fields) {
    if (name !== "grpc-encoding" && isReserved(name)) continue;
    if (name.endsWith("-bin")) {
      for (const part of value.split(",")) {
        metadata.add(name, decodeBinary(name, part.trim()));
      }
    } else if (TEXT_VALUE.test(value)) {
      metadata.add(name, value);
    }
  }
  return metadata;
}

/**
 * Writes `metadata` as header fields, behind those already in `fields`.
 * Reserved names are skipped, as other gRPC implementations do.
 *
 * @throws {TypeError} For a name or value that gRPC cannot carry: a bug of the
 *   caller, which did not check it.
 */
export function appendMetadata(
  fields: HeaderField[],
  metadata: Metadata | undefined,
): void {
  if (metadata === undefined) return;
  for (const [name, value] of metadata) {
    if (isReserved(name)) continue;
    const text = encodeValue(name, value);
    fields.push(
      SECRET_NAMES.has(name)
        ? { name, value: text, neverIndex: true }
        : { name, value: text },
    );
  }
}

function isReserved(name: string): boolean {
  return name.startsWith(":") || name.startsWith("grpc-") ||
    RESERVED_NAMES.has(name);
}

function encodeValue(name: string, value: MetadataValue): string {
  if (!NAME.test(name)) {
    throw new TypeError(
      `Cannot send metadata ${
        JSON.stringify(name)
      }: names have only a-z, 0-9, "_", "-" and "."`,
    );
  }
  if (name.endsWith("-bin")) {
    if (typeof value !== "string") return value.toBase64({ omitPadding: true });
    throw new TypeError(`Cannot send metadata ${name}: "-bin" wants bytes`);
  }
  // Spaces at the edges are not allowed in a field value (RFC 9113 §8.2.1) and
  // mean nothing in gRPC.
  if (typeof value === "string" && TEXT_VALUE.test(value)) return value.trim();
  throw new TypeError(
    `Cannot send metadata ${name}: values are printable ASCII unless the name ends in "-bin"`,
  );
}

function decodeBinary(name: string, text: string): Uint8Array {
  try {
    return Uint8Array.fromBase64(text, { lastChunkHandling: "loose" });
  } catch {
    // SyntaxError is the only way out of fromBase64: the peer's fault.
    throw new GrpcError(
      StatusCode.INTERNAL,
      `Cannot read metadata ${name}: its value is not base64`,
    );
  }
}
