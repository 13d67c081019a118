/**
 * The client's side of xDS on the wire: requests out, responses in.
 *
 * Layer: xDS. Unlike a server's (`request_decoder.ts`, `response_encoder.ts`)
 * it is not hot, so protobufjs writes and reads. Resources stay bytes until
 * their content is needed, and one that is broken spoils no other.
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
import { malformed, readText, readView } from "./read_fields.ts";
import {
  type Any,
  DeltaDiscoveryRequestMessage,
  DeltaDiscoveryResponseMessage,
  DiscoveryRequestMessage,
  DiscoveryResponseMessage,
} from "./xds_messages.ts";

/** All kinds of resources have their name in their first field. */
const OWN_NAME_TAG = 1 << 3 | 2;

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
    return mode === "sotw" ? readSotw(bytes) : readDelta(bytes);
  } catch (error) {
    throw malformed("response", bytes, error);
  }
}

function readSotw(bytes: Uint8Array): DiscoveryResponse {
  const {
    typeUrl = "",
    versionInfo: version = "",
    nonce = "",
    resources = [],
  } = DiscoveryResponseMessage.decode(bytes);
  const received = resources.map((any) => receivedOf(any, version));
  return { typeUrl, version, nonce, resources: received, removed: [] };
}

function readDelta(bytes: Uint8Array): DiscoveryResponse {
  const message = DeltaDiscoveryResponseMessage.decode(bytes);
  const { typeUrl = "", systemVersionInfo = "", nonce = "" } = message;
  const { resources = [], removedResources: removed = [] } = message;
  const received = resources.map(({ name, version = "", resource = {} }) => {
    const own = receivedOf(resource, version);
    return name ? { ...own, name } : own;
  });
  const version = systemVersionInfo;
  return { typeUrl, version, nonce, resources: received, removed };
}

/** The name is the one that the content has. */
function receivedOf(
  { typeUrl = "", value = NO_BYTES }: Any,
  version: string,
): ReceivedResource {
  return { name: nameIn(value), version, typeUrl, value };
}

/** The name that a resource has; empty when it is broken. */
function nameIn(resource: Uint8Array): string {
  const reader = new protobuf.Reader(resource);
  let name = "";
  try {
    while (reader.pos < reader.len) {
      const tag = reader.tag();
      if (tag === OWN_NAME_TAG) name = readText(readView(reader));
      else reader.skipType(tag & 7, 0, tag >>> 3);
    }
  } catch {
    // The reader of its content reports what is wrong with it.
    return "";
  }
  return name;
}
