/**
 * Requests and responses of xDS: what is read by hand is what protobufjs reads,
 * nothing but `GrpcError` is thrown, and a list that is repeated is the same
 * array. The first byte of an input says which message the rest is.
 *
 * @module
 */

import { joinedBytes } from "../../../proto/bytes/byte_arrays.ts";
import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import { GrpcError, StatusCode } from "../../../proto/grpc/status.ts";
import { decodeResponse } from "../../../proto/xds/client_codec.ts";
import type { DiscoveryMode } from "../../../proto/xds/discovery.ts";
import { pack } from "../../../proto/xds/any.ts";
import {
  Cluster,
  DeltaDiscoveryRequestMessage,
  DeltaDiscoveryResponseMessage,
  DiscoveryRequestMessage,
  DiscoveryResponseMessage,
} from "../../../proto/xds/xds_messages.ts";
import { RequestDecoder } from "../../../proto/xds/request_decoder.ts";
import { TYPE_URLS } from "../../../proto/xds/resource.ts";
import { structOf } from "../../../proto/xds/struct_data.ts";
import type { FuzzTarget } from "../target.ts";

/** What the first byte says. */
const KINDS = [
  { name: "sotw", read: readSotwRequest },
  { name: "delta", read: readDeltaRequest },
  { name: "sotw response", read: (bytes) => readResponse("sotw", bytes) },
  { name: "delta response", read: (bytes) => readResponse("delta", bytes) },
] as const satisfies { name: string; read: (bytes: Uint8Array) => string }[];

const NODE = {
  id: "node-1",
  metadata: structOf({ kind: "proxy", list: [1, null, { deep: true }] }),
  locality: { zone: "z" },
  userAgentName: "envoy",
  userAgentBuildVersion: { version: { majorNumber: 1, minorNumber: 40 } },
};

/** See the module description. */
export const DISCOVERY: FuzzTarget = {
  name: "discovery",
  seeds: [
    input(
      0,
      DiscoveryRequestMessage.encode({
        ...{ node: NODE, typeUrl: TYPE_URLS.cluster, versionInfo: "1" },
        ...{ resourceNames: ["a", "b", "é"], responseNonce: "2" },
        errorDetail: { code: 3, message: "no", details: [pack(Cluster, {})] },
      }),
    ),
    // Names in two places, one of them empty; a group between.
    input(0, Uint8Array.fromHex("1a01611a00" + "530800" + "54" + "1a0162")),
    input(
      1,
      DeltaDiscoveryRequestMessage.encode({
        ...{ node: NODE, typeUrl: TYPE_URLS.endpoints, responseNonce: "7" },
        resourceNamesSubscribe: ["a", "*"],
        resourceNamesUnsubscribe: ["b"],
        initialResourceVersions: { a: "1", b: "" },
      }),
    ),
    input(
      2,
      DiscoveryResponseMessage.encode({
        ...{ versionInfo: "1", typeUrl: TYPE_URLS.cluster, nonce: "n" },
        resources: [pack(Cluster, { name: "a" }), pack(Cluster, {})],
        controlPlane: { identifier: "x" },
      }),
    ),
    input(
      3,
      DeltaDiscoveryResponseMessage.encode({
        ...{ systemVersionInfo: "1", typeUrl: TYPE_URLS.cluster, nonce: "n" },
        resources: [
          { name: "a", version: "2", resource: pack(Cluster, { name: "a" }) },
          { name: "heartbeat", version: "3", ttl: { seconds: 5 } },
        ],
        removedResources: ["b"],
      }),
    ),
  ],
  dictionary: [
    Uint8Array.of(0x1a, 0x00),
    Uint8Array.of(0x1a, 0x01, 0x61),
    Uint8Array.of(0x2a, 0x06, 0x0a, 0x01, 0x61, 0x12, 0x01, 0x31),
    Uint8Array.of(0x12, 0x02, 0x0a, 0x00),
    Uint8Array.of(0x9a, 0x80, 0x00),
    Uint8Array.of(0x1a, 0xff, 0xff, 0xff, 0xff, 0x0f),
    Uint8Array.of(0x1a, 0x81, 0x08),
    Uint8Array.of(0xc3, 0x28),
  ],
  // The kind, then fields as far as they are well formed.
  split: (bytes) => [bytes.subarray(0, 1), ...fieldsOf(bytes.subarray(1))],
  repair: repairField,

  run(bytes) {
    const kind = KINDS[(bytes[0] ?? 0) % KINDS.length]!;
    const message = bytes.slice(1);
    let seen: string;
    try {
      seen = kind.read(message);
    } catch (error) {
      if (!(error instanceof GrpcError)) throw error;
      seen = `status ${error.code}`;
    }
    return `${kind.name} ${seen}`;
  },
};

function readSotwRequest(bytes: Uint8Array): string {
  const decoder = new RequestDecoder();
  const expected = oracle(() => DiscoveryRequestMessage.decode(bytes));
  const request = sureOf(() => decoder.decode("sotw", bytes), expected);
  assert(request.mode === "sotw" && typeof expected !== "string");
  const { resourceNames = [], ...said }: DiscoveryRequestMessage = expected;
  assertEquals(request.resourceNames, resourceNames);
  assertEquals(request.typeUrl, said.typeUrl ?? "");
  assertEquals(request.versionInfo, said.versionInfo ?? "");
  assertEquals(request.responseNonce, said.responseNonce ?? "");
  assertEquals(request.errorDetail?.code, codeOf(said.errorDetail));
  assertEquals(request.node?.id, said.node && (said.node.id ?? ""));
  const again = decoder.decode("sotw", bytes);
  assert(again.mode === "sotw");
  assertStrictEquals(again.resourceNames, request.resourceNames);
  return `${resourceNames.length} ${Object.keys(said).join()}`;
}

function readDeltaRequest(bytes: Uint8Array): string {
  const decoder = new RequestDecoder();
  const expected = oracle(() => DeltaDiscoveryRequestMessage.decode(bytes));
  const request = sureOf(() => decoder.decode("delta", bytes), expected);
  assert(request.mode === "delta" && typeof expected !== "string");
  const said: DeltaDiscoveryRequestMessage = expected;
  assertEquals(request.subscribe, said.resourceNamesSubscribe ?? []);
  assertEquals(request.unsubscribe, said.resourceNamesUnsubscribe ?? []);
  assertEquals(
    Object.fromEntries(request.initialVersions),
    { ...said.initialResourceVersions },
  );
  assertEquals(request.typeUrl, said.typeUrl ?? "");
  assertEquals(request.responseNonce, said.responseNonce ?? "");
  assertEquals(request.errorDetail?.code, codeOf(said.errorDetail));
  assertEquals(request.node?.id, said.node && (said.node.id ?? ""));
  return Object.keys(said).join();
}

/** Unlike the oracle ours looks into no field that it has no use for. */
function readResponse(mode: DiscoveryMode, bytes: Uint8Array): string {
  const kind = mode === "sotw"
    ? DiscoveryResponseMessage
    : DeltaDiscoveryResponseMessage;
  const expected = oracle<
    DiscoveryResponseMessage & DeltaDiscoveryResponseMessage
  >(() => kind.decode(bytes));
  if (expected === "broken") {
    decodeResponse(mode, bytes);
    return expected;
  }
  const response = decodeResponse(mode, bytes);
  const version = expected.versionInfo ?? expected.systemVersionInfo;
  assertEquals(response.version, version ?? "");
  assertEquals(response.typeUrl, expected.typeUrl ?? "");
  assertEquals(response.nonce, expected.nonce ?? "");
  assertEquals(response.removed, expected.removedResources ?? []);
  assertEquals(response.resources.length, expected.resources?.length ?? 0);
  return `${response.resources.length} ${Object.keys(expected).join()}`;
}

function oracle<T>(decode: () => T): T | "broken" {
  try {
    return decode();
  } catch (error) {
    assert(error instanceof GrpcError);
    return "broken";
  }
}

/** What we read, which may be less than the oracle does for good reasons only. */
function sureOf<T>(decode: () => T, expected: unknown): T {
  try {
    const request = decode();
    assert(typeof expected !== "string", `read, although it is ${expected}`);
    return request;
  } catch (error) {
    if (!(error instanceof GrpcError)) throw error;
    if (error.code !== StatusCode.RESOURCE_EXHAUSTED) {
      assert(typeof expected === "string", error.message);
    }
    throw error;
  }
}

function codeOf(status: { code?: number | undefined } | undefined) {
  return status && (status.code ?? 0);
}

function input(kind: number, message: Uint8Array): Uint8Array {
  return joinedBytes([Uint8Array.of(kind), message]);
}

/** Cuts behind every field with a tag and a length of a byte each. */
function fieldsOf(bytes: Uint8Array): Uint8Array[] {
  const fields: Uint8Array[] = [];
  for (let at = 0; at < bytes.length;) {
    const [tag = 0, length = 0] = bytes.subarray(at);
    const isShort = (tag & 0x87) === 2 && length < 0x80;
    const end = isShort ? at + 2 + length : bytes.length;
    fields.push(bytes.subarray(at, end));
    at = end;
  }
  return fields;
}

function repairField(record: Uint8Array): Uint8Array {
  const length = record.length - 2;
  if (length < 0 || length > 0x7f || (record[0]! & 7) !== 2) return record;
  return Uint8Array.of(record[0]!, length, ...record.subarray(2));
}
