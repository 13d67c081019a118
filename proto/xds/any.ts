/**
 * Messages in `google.protobuf.Any`, and out of it.
 *
 * Layer: xDS.
 *
 * @module
 */

import protobuf from "protobufjs/minimal.js";
import type { MessageKind } from "./message_kind.ts";
import { Any, type Duration } from "./xds_messages.ts";

/** The key of a cluster's `HttpProtocolOptions`. */
export const HTTP_OPTIONS_KEY =
  "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/**
 * The key in an endpoint's `typedFilterMetadata` with the address of its proxy,
 * an `Address`. Endpoints without it are dialed directly.
 */
export const PROXY_ADDRESS_KEY =
  "envoy.http11_proxy_transport_socket.proxy_address";

/**
 * The extension that leaves out endpoints that were tried already; it has no
 * settings.
 */
export const PREVIOUS_HOSTS = "envoy.retry_host_predicates.previous_hosts";

/** The extension that leaves out priorities that were tried already. */
export const PREVIOUS_PRIORITIES = "envoy.retry_priorities.previous_priorities";

/**
 * Tags of length-delimited fields: the number, and 2 (protobuf's wire format).
 */
const ANY_TYPE_TAG = 1 << 3 | 2;
const ANY_VALUE_TAG = 2 << 3 | 2;
const NAME_TAG = 1 << 3 | 2;

/** `message` as an `Any`, for a field of another message. */
export function pack<T extends object>(
  kind: MessageKind<T>,
  message: T,
): Any {
  return { typeUrl: kind.typeUrl, value: kind.encode(message) };
}

/** `message` as an encoded `Any`, such as `Resource.any`. */
export function encodeAny<T extends object>(
  kind: MessageKind<T>,
  message: T,
): Uint8Array {
  const writer = protobuf.Writer.create();
  writer.uint32(ANY_TYPE_TAG).string(kind.typeUrl);
  writer.uint32(ANY_VALUE_TAG).fork();
  kind.write(message, writer);
  return new Uint8Array(writer.ldelim().finish());
}

/**
 * `message` once for each of `names`, in their order, as {@linkcode encodeAny}
 * would: the part after the name is encoded once for all. The results are parts
 * of one buffer.
 *
 * @param kind One whose first field is `string name`.
 * @param message Without a name.
 */
export function encodeNamesakes<
  T extends { readonly name?: string | undefined },
>(
  kind: MessageKind<T>,
  names: readonly string[],
  message: Omit<T, "name">,
): Uint8Array[] {
  const body = kind.encode(message as T);
  const writer = protobuf.Writer.create();
  const ends = names.map((name) => {
    writer.uint32(ANY_TYPE_TAG).string(kind.typeUrl);
    writer.uint32(ANY_VALUE_TAG).fork();
    if (name !== "") writer.uint32(NAME_TAG).string(name);
    writer.raw(body).ldelim();
    return writer.len;
  });
  // They come and go together, so one buffer is enough.
  const all = new Uint8Array(writer.finish());
  return ends.map((end, index) => all.subarray(ends[index - 1] ?? 0, end));
}

/**
 * The content of `any`.
 *
 * @returns `undefined` when it has another type, or none.
 * @throws {GrpcError} INVALID_ARGUMENT when it is broken.
 */
export function unpack<T extends object>(
  kind: MessageKind<T>,
  any: Any | undefined,
): T | undefined {
  if (any?.typeUrl !== kind.typeUrl) return undefined;
  return kind.decode(any.value ?? new Uint8Array(0));
}

/** Like {@linkcode unpack}, out of an encoded `Any`. */
export function decodeAny<T extends object>(
  kind: MessageKind<T>,
  bytes: Uint8Array,
): T | undefined {
  return unpack(kind, Any.decode(bytes));
}

/** `ms`, whole ones or not, as the message. */
export function durationOf(ms: number): Duration {
  const seconds = Math.floor(ms / 1000);
  return { seconds, nanos: Math.round((ms - seconds * 1000) * 1e6) };
}
