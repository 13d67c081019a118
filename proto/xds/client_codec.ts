/**
 * The client's side of xDS on the wire: requests out, responses in.
 *
 * Layer: xDS. Unlike a server's (`request_decoder.ts`, `response_encoder.ts`)
 * it is not hot, so requests are written by protobufjs. Responses are walked by
 * hand: resources stay bytes until their content is needed, and one that is
 * broken spoils no other.
 *
 * @module
 */

import protobuf from "protobufjs/minimal.js";
import type {
  DiscoveryMode,
  DiscoveryRequest,
  DiscoveryResponse,
  ReceivedResource,
} from "./discovery.ts";
import { nodeMessage } from "./node_codec.ts";
import {
  malformed,
  NONCE_FIELD,
  readText,
  readView,
  REMOVED_FIELD,
  RESOURCE_ANY_FIELD,
  RESOURCE_NAME_FIELD,
  RESOURCE_VERSION_FIELD,
  RESOURCES_FIELD,
  TYPE_URL_FIELD,
  VERSION_FIELD,
} from "./response_fields.ts";
import {
  DeltaDiscoveryRequestMessage,
  DiscoveryRequestMessage,
} from "./xds_messages.ts";

const { Reader } = protobuf;

/** Of `google.protobuf.Any`. */
const ANY_TYPE_URL_FIELD = 1;
const ANY_VALUE_FIELD = 2;

/** All four kinds of resources have their name in their first field. */
const OWN_NAME_FIELD = 1;

const LENGTH_DELIMITED = 2;
const NO_BYTES = new Uint8Array(0);

/** Writes `DiscoveryRequest` or `DeltaDiscoveryRequest`. */
export function encodeRequest(request: DiscoveryRequest): Uint8Array {
  const { typeUrl, responseNonce, errorDetail } = request;
  const node = request.node && nodeMessage(request.node);
  if (request.mode === "sotw") {
    const { versionInfo, resourceNames } = request;
    return DiscoveryRequestMessage.encode({
      ...{ node, typeUrl, versionInfo },
      ...{ resourceNames, responseNonce, errorDetail },
    });
  }
  return DeltaDiscoveryRequestMessage.encode({
    ...{ node, typeUrl, responseNonce, errorDetail },
    resourceNamesSubscribe: request.subscribe,
    resourceNamesUnsubscribe: request.unsubscribe,
    initialResourceVersions: Object.fromEntries(request.initialVersions),
  });
}

/**
 * Reads `DiscoveryResponse` or `DeltaDiscoveryResponse`.
 *
 * @returns What is in it are views of `bytes`.
 * @throws {GrpcError} INVALID_ARGUMENT when they are no such message.
 */
export function decodeResponse(
  mode: DiscoveryMode,
  bytes: Uint8Array,
): DiscoveryResponse {
  try {
    return readResponse(mode, bytes);
  } catch (error) {
    throw malformed("response", bytes, error);
  }
}

function readResponse(
  mode: DiscoveryMode,
  bytes: Uint8Array,
): DiscoveryResponse {
  let [version, typeUrl, nonce] = ["", "", ""];
  const resources: Uint8Array[] = [];
  const removed: string[] = [];
  for (const { field, value } of fieldsOf(bytes)) {
    if (field === VERSION_FIELD) version = readText(value);
    else if (field === RESOURCES_FIELD) resources.push(value);
    else if (field === TYPE_URL_FIELD) typeUrl = readText(value);
    else if (field === NONCE_FIELD) nonce = readText(value);
    // SotW has something else in this field.
    else if (field === REMOVED_FIELD && mode === "delta") {
      removed.push(readText(value));
    }
  }
  const read = mode === "delta"
    ? readResource
    // Fields may come in any order: only now is the version known.
    : (any: Uint8Array) => readAny(any, version);
  return { typeUrl, version, nonce, resources: resources.map(read), removed };
}

/** `envoy.service.discovery.v3.Resource`. */
function readResource(bytes: Uint8Array): ReceivedResource {
  let [version, name] = ["", ""];
  let any: Uint8Array = NO_BYTES;
  for (const { field, value } of fieldsOf(bytes)) {
    if (field === RESOURCE_VERSION_FIELD) version = readText(value);
    else if (field === RESOURCE_ANY_FIELD) any = value;
    else if (field === RESOURCE_NAME_FIELD) name = readText(value);
  }
  return name === ""
    ? readAny(any, version)
    : { ...readAny(any, version), name };
}

/** `google.protobuf.Any`; the name is the one that its content has. */
function readAny(any: Uint8Array, version: string): ReceivedResource {
  let typeUrl = "";
  let value: Uint8Array = NO_BYTES;
  for (const { field, value: bytes } of fieldsOf(any)) {
    if (field === ANY_TYPE_URL_FIELD) typeUrl = readText(bytes);
    else if (field === ANY_VALUE_FIELD) value = bytes;
  }
  return { name: nameIn(value), version, typeUrl, value };
}

/** The name that a resource has; empty when it is broken. */
function nameIn(resource: Uint8Array): string {
  let name = "";
  try {
    for (const { field, value } of fieldsOf(resource)) {
      if (field === OWN_NAME_FIELD) name = readText(value);
    }
  } catch {
    // The reader of its content reports what is wrong with it.
    return "";
  }
  return name;
}

/** Length-delimited fields in their order, as views. */
function* fieldsOf(
  bytes: Uint8Array,
): Generator<{ field: number; value: Uint8Array }> {
  const reader = new Reader(bytes);
  while (reader.pos < reader.len) {
    const tag = reader.tag();
    const field = tag >>> 3;
    if ((tag & 7) === LENGTH_DELIMITED) {
      yield { field, value: readView(reader) };
    } else reader.skipType(tag & 7, 0, field);
  }
}
