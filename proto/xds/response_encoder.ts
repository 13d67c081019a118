/**
 * A server's responses, as bytes.
 *
 * Layer: xDS. A message is a client's own part, its nonce and the server's id,
 * and a body that is the same for all clients that are sent the same. Protobuf
 * does not mind the order of fields, so a thousand clients share one body:
 *
 *     call.sendMessage(encodeHead(mode, nonce, server), encodeBody(mode, body))
 *
 * @module
 */

import type { DiscoveryMode, ResponseBody } from "./discovery.ts";
import type { Resource } from "./resource.ts";
import { StatusCode } from "../grpc/status.ts";

// Numbers of fields: `envoy/service/discovery/v3/discovery.proto`.

/** Field numbers of `DiscoveryResponse` and of `DeltaDiscoveryResponse`. */
const VERSION_FIELD = 1;
const RESOURCES_FIELD = 2;
const TYPE_URL_FIELD = 4;
const NONCE_FIELD = 5;

/** Field numbers of `DeltaDiscoveryResponse` alone. */
const REMOVED_FIELD = 6;

/**
 * Field number in `DiscoveryResponse` of the reasons why resources are missing.
 */
const ERRORS_FIELD = 7;

/**
 * Field numbers of `ResourceError`, of its name, and of its
 * `google.rpc.Status`.
 */
const ERROR_NAME_FIELD = 1;
const ERROR_DETAIL_FIELD = 2;
const RESOURCE_NAME_IN_ERROR_FIELD = 1;
const STATUS_MESSAGE_FIELD = 2;

/** The server's id: other numbers in each of the two. */
const CONTROL_PLANE_FIELDS = { sotw: 6, delta: 7 } as const;

/** Field numbers of `ControlPlane`. */
const IDENTIFIER_FIELD = 1;

/**
 * Field numbers of `Resource`, of which a `DeltaDiscoveryResponse` has many.
 */
const RESOURCE_VERSION_FIELD = 1;
const RESOURCE_ANY_FIELD = 2;
const RESOURCE_NAME_FIELD = 3;

const UTF8 = new TextEncoder();

/** Bytes, and their content besides the array that they are found by. */
interface Encoded {
  readonly body: ResponseBody;
  readonly bytes: Uint8Array;
}

/** Caches for the longest parts of a body; each holds the last one. */
const encoded: Readonly<Record<DiscoveryMode, WeakMap<object, Encoded>>> = {
  sotw: new WeakMap(),
  delta: new WeakMap(),
};

/**
 * All of a response but its nonce. Bodies with the same array of resources (or,
 * without resources, of removed names) get the same bytes, as long as the rest
 * of them is the same too.
 *
 * @returns Shared: never change it.
 */
export function encodeBody(
  mode: DiscoveryMode,
  body: ResponseBody,
): Uint8Array {
  const key = body.resources.length > 0 ? body.resources : body.removed;
  const known = encoded[mode].get(key);
  if (known !== undefined && isSame(known.body, body)) return known.bytes;
  const bytes = mode === "sotw" ? sotwBody(body) : deltaBody(body);
  encoded[mode].set(key, { body, bytes });
  return bytes;
}

/**
 * The fields for one client.
 *
 * @param server `control_plane.identifier`: Envoy shows it, which tells the
 *   followed server.
 */
export function encodeHead(
  mode: DiscoveryMode,
  nonce: string,
  server: string,
): Uint8Array {
  const size = sizeOfText(server);
  const writer = new Writer(
    sizeOfText(nonce) + (size === 0 ? 0 : sizeOfField(size)),
  );
  writer.text(NONCE_FIELD, nonce);
  if (size > 0) {
    writer.head(CONTROL_PLANE_FIELDS[mode], size);
    writer.text(IDENTIFIER_FIELD, server);
  }
  return writer.bytes;
}

function isSame(one: ResponseBody, other: ResponseBody): boolean {
  return one.resources === other.resources && one.removed === other.removed &&
    one.version === other.version && one.typeUrl === other.typeUrl &&
    one.absent === other.absent;
}

function sotwBody(
  { typeUrl, version, resources, absent = [] }: ResponseBody,
): Uint8Array {
  let size = sizeOfText(version) + sizeOfText(typeUrl);
  for (const { any } of resources) size += sizeOfField(any.length);
  const errors = absent.map(absenceOf);
  for (const error of errors) size += sizeOfField(error.length);
  const writer = new Writer(size);
  writer.text(VERSION_FIELD, version);
  for (const { any } of resources) writer.field(RESOURCES_FIELD, any);
  writer.text(TYPE_URL_FIELD, typeUrl);
  for (const error of errors) writer.field(ERRORS_FIELD, error);
  return writer.bytes;
}

/** `ResourceError`: there is no such resource. */
function absenceOf(name: string): Uint8Array {
  const inner = sizeOfText(name);
  const detail = statusBytes();
  const writer = new Writer(sizeOfField(inner) + sizeOfField(detail.length));
  writer.head(ERROR_NAME_FIELD, inner);
  writer.text(RESOURCE_NAME_IN_ERROR_FIELD, name);
  writer.field(ERROR_DETAIL_FIELD, detail);
  return writer.bytes;
}

function statusBytes(): Uint8Array {
  const text = new Writer(sizeOfText(ABSENT));
  text.text(STATUS_MESSAGE_FIELD, ABSENT);
  // Its code is no length-delimited field.
  return absentStatus ??= Uint8Array.of(
    STATUS_CODE_TAG,
    StatusCode.NOT_FOUND,
    ...text.bytes,
  );
}

/** The same for all. */
let absentStatus: Uint8Array | undefined;
const ABSENT = "there is no such resource";
const STATUS_CODE_TAG = 1 << 3;

function deltaBody(body: ResponseBody): Uint8Array {
  const { typeUrl, version, resources, removed } = body;
  const sizes = resources.map(sizeOfResource);
  let size = sizeOfText(version) + sizeOfText(typeUrl);
  for (const one of sizes) size += sizeOfField(one);
  for (const name of removed) size += sizeOfField(bytesOf(name));
  const writer = new Writer(size);
  writer.text(VERSION_FIELD, version);
  resources.forEach((resource, index) => {
    writer.head(RESOURCES_FIELD, sizes[index]!);
    writer.text(RESOURCE_VERSION_FIELD, resource.version);
    writer.field(RESOURCE_ANY_FIELD, resource.any);
    writer.text(RESOURCE_NAME_FIELD, resource.name);
  });
  writer.text(TYPE_URL_FIELD, typeUrl);
  for (const name of removed) {
    writer.head(REMOVED_FIELD, bytesOf(name));
    writer.utf8(name);
  }
  return writer.bytes;
}

function sizeOfResource({ version, any, name }: Resource): number {
  return sizeOfText(version) + sizeOfField(any.length) + sizeOfText(name);
}

/** A text field; an empty one is not written. */
function sizeOfText(text: string): number {
  return text === "" ? 0 : sizeOfField(bytesOf(text));
}

/** A field of `length` bytes with a tag of one byte. */
function sizeOfField(length: number): number {
  let bytes = 2 + length;
  for (let rest = length >>> 7; rest > 0; rest >>>= 7) bytes++;
  return bytes;
}

/** Bytes of `text` in UTF-8. */
function bytesOf(text: string): number {
  for (let at = 0; at < text.length; at++) {
    if (text.charCodeAt(at) >= 0x80) return UTF8.encode(text).length;
  }
  return text.length;
}

/** Writes length-delimited fields into exactly as many bytes as they have. */
class Writer {
  readonly bytes: Uint8Array;
  #at = 0;

  constructor(size: number) {
    this.bytes = new Uint8Array(size);
  }

  text(field: number, text: string): void {
    if (text === "") return;
    this.head(field, bytesOf(text));
    this.utf8(text);
  }

  field(field: number, bytes: Uint8Array): void {
    this.head(field, bytes.length);
    this.bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  head(field: number, length: number): void {
    this.bytes[this.#at++] = field << 3 | 2;
    let rest = length;
    for (; rest > 0x7f; rest >>>= 7) {
      this.bytes[this.#at++] = rest & 0x7f | 0x80;
    }
    this.bytes[this.#at++] = rest;
  }

  utf8(text: string): void {
    this.#at += UTF8.encodeInto(text, this.bytes.subarray(this.#at)).written;
  }
}
