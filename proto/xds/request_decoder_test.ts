import {
  assert,
  assertEquals,
  assertStrictEquals,
  assertThrows,
} from "@std/assert";
import { forAll, type Prng } from "../../tests/support/memory/prng.ts";
import { GrpcError } from "../grpc/status.ts";
import type { DeltaRequest, DiscoveryMode, SotwRequest } from "./discovery.ts";
import {
  DeltaDiscoveryRequestMessage,
  DiscoveryRequestMessage,
  type Node,
} from "./xds_messages.ts";
import { NAME_BYTES_MAX, NAMES_PER_REQUEST_MAX } from "./name_lists.ts";
import {
  CLIENT_FEATURES_MAX,
  NODE_BYTES_MAX,
  NODE_TEXT_MAX,
} from "./node_codec.ts";
import {
  ERROR_MESSAGE_MAX,
  PIECES_MAX,
  REQUEST_TEXT_BYTES_MAX,
  RequestDecoder,
} from "./request_decoder.ts";
import { TYPE_URLS } from "./resource.ts";
import { STRUCT_SIZE_MAX, structOf } from "./struct_data.ts";

const NODE: Node = {
  id: "node-1",
  cluster: "c",
  metadata: structOf({ "tunnel.kind": "proxy", list: [1, true] }),
  locality: { region: "r", zone: "z", subZone: "s" },
  userAgentName: "gRPC Go",
  userAgentVersion: "1.85.0",
  clientFeatures: ["envoy.lb.does_not_support_overprovisioning"],
};

const names = (count: number) =>
  Array.from({ length: count }, (_, index) => `default/service-${index}:80`);

function sotw(bytes: Uint8Array, decoder = new RequestDecoder()): SotwRequest {
  const request = decoder.decode("sotw", bytes);
  assert(request.mode === "sotw");
  return request;
}

function delta(
  bytes: Uint8Array,
  decoder = new RequestDecoder(),
): DeltaRequest {
  const request = decoder.decode("delta", bytes);
  assert(request.mode === "delta");
  return request;
}

function assertRefused(
  bytes: Uint8Array,
  code: number,
  message: string,
  mode: DiscoveryMode = "sotw",
): void {
  const error = assertThrows(
    () => new RequestDecoder().decode(mode, bytes),
    GrpcError,
    message,
  );
  assertEquals(error.code, code);
}

Deno.test("a first request is read whole", () => {
  const bytes = DiscoveryRequestMessage.encode({
    node: NODE,
    typeUrl: TYPE_URLS.cluster,
  });
  assertEquals(sotw(bytes), {
    mode: "sotw",
    node: {
      id: "node-1",
      cluster: "c",
      metadata: { "tunnel.kind": "proxy", list: [1, true] },
      locality: { region: "r", zone: "z", subZone: "s" },
      userAgentName: "gRPC Go",
      userAgentVersion: "1.85.0",
      clientFeatures: ["envoy.lb.does_not_support_overprovisioning"],
    },
    typeUrl: TYPE_URLS.cluster,
    versionInfo: "",
    resourceNames: [],
    responseNonce: "",
    errorDetail: undefined,
  });
});

Deno.test("Envoy's version is the one of its build", () => {
  const { userAgentVersion: _, ...node } = NODE;
  const version = { majorNumber: 1, minorNumber: 40 };
  const bytes = DiscoveryRequestMessage.encode({
    node: { ...node, userAgentBuildVersion: { version } },
  });
  assertEquals(sotw(bytes).node?.userAgentVersion, "1.40.0");
});

Deno.test("a NACK is one by its error, were that empty", () => {
  const said = {
    versionInfo: "v1",
    typeUrl: TYPE_URLS.listener,
    responseNonce: "2",
  };
  const refused = DiscoveryRequestMessage.encode({
    ...said,
    errorDetail: { code: 13, message: "no" },
  });
  assertEquals(sotw(refused).errorDetail, { code: 13, message: "no" });
  const empty = DiscoveryRequestMessage.encode({ ...said, errorDetail: {} });
  assertEquals(sotw(empty).errorDetail, { code: 0, message: "" });
  assertEquals(
    sotw(DiscoveryRequestMessage.encode(said)).errorDetail,
    undefined,
  );
});

Deno.test("a Delta request is read whole", () => {
  const bytes = DeltaDiscoveryRequestMessage.encode({
    node: { id: "n" },
    typeUrl: TYPE_URLS.endpoints,
    resourceNamesSubscribe: ["a", "b"],
    resourceNamesUnsubscribe: ["c"],
    initialResourceVersions: { a: "1", b: "" },
    responseNonce: "7",
    errorDetail: { message: "x" },
  });
  const request = delta(bytes);
  assertEquals(request.node?.id, "n");
  assertEquals(request.typeUrl, TYPE_URLS.endpoints);
  assertEquals(request.subscribe, ["a", "b"]);
  assertEquals(request.unsubscribe, ["c"]);
  assertEquals([...request.initialVersions], [["a", "1"], ["b", ""]]);
  assertEquals(request.responseNonce, "7");
  assertEquals(request.errorDetail, { code: 0, message: "x" });
});

Deno.test("clients that ask for the same share one list", () => {
  const decoder = new RequestDecoder();
  const ack = (responseNonce: string, resourceNames: readonly string[]) =>
    DiscoveryRequestMessage.encode({ resourceNames, responseNonce });
  const first = sotw(ack("1", names(200)), decoder);
  assertEquals(first.resourceNames, names(200));
  const second = sotw(ack("12345", names(200)), decoder);
  assertStrictEquals(second.resourceNames, first.resourceNames);
  assertEquals(second.responseNonce, "12345");
  const other = sotw(ack("1", names(201)), decoder);
  assertEquals(other.resourceNames.length, 201);
  assertEquals(decoder.nameLists, 2);
  // Another order is another list: it is told as it came.
  const turned = sotw(ack("1", names(200).reverse()), decoder);
  assertEquals(turned.resourceNames[0], "default/service-199:80");
});

Deno.test("versions that clients come back with are shared, too", () => {
  const decoder = new RequestDecoder();
  const bytes = DeltaDiscoveryRequestMessage.encode({
    initialResourceVersions: { a: "1", b: "2" },
  });
  assertStrictEquals(
    delta(bytes, decoder).initialVersions,
    delta(bytes, decoder).initialVersions,
  );
});

Deno.test("names stay what they are when the bytes are used again", () => {
  const bytes = DiscoveryRequestMessage.encode({
    resourceNames: ["one", "two"],
  });
  const decoder = new RequestDecoder();
  const { resourceNames } = sotw(bytes, decoder);
  bytes.fill(0x41);
  assertEquals(resourceNames, ["one", "two"]);
  const again = DiscoveryRequestMessage.encode({
    resourceNames: ["one", "two"],
  });
  assertStrictEquals(sotw(again, decoder).resourceNames, resourceNames);
  assertThrows(() => (resourceNames as string[]).push("three"), TypeError);
});

Deno.test("names that are strewn over a request are one list in order", () => {
  const bytes = Uint8Array.fromHex(
    "1a0161" + "2a0131" + "1a0162" + "1a0163" + "c23e0178" + "1a0164",
  );
  const request = sotw(bytes);
  assertEquals(request.resourceNames, ["a", "b", "c", "d"]);
  assertEquals(request.responseNonce, "1");
});

Deno.test("fields of another wire type and unknown ones pass", () => {
  // Names as a varint, field 7 (locators), a group, then a name.
  const bytes = Uint8Array.fromHex(
    "1807" + "3a020a00" + "7b0800" + "7c" + "1a0161",
  );
  assertEquals(sotw(bytes).resourceNames, ["a"]);
});

Deno.test("malformed bytes are the peer's fault", () => {
  for (
    const hex of ["1a05", "1a", "1aff", "0a0361", "1a02c328", "2201ff", "00"]
  ) {
    assertRefused(Uint8Array.fromHex(hex), 3, "Cannot read a");
  }
  // A node whose own bytes are cut short; a map entry that is.
  assertRefused(Uint8Array.fromHex("12020a05"), 3, "Cannot read a");
  assertRefused(Uint8Array.fromHex("2a020a05"), 3, "Cannot read a", "delta");
});

Deno.test("more names than the limit are refused, as many are not", () => {
  const some = new Array<string>(NAMES_PER_REQUEST_MAX).fill("n");
  const most = DiscoveryRequestMessage.encode({ resourceNames: some });
  assertEquals(sotw(most).resourceNames.length, NAMES_PER_REQUEST_MAX);
  const more = DiscoveryRequestMessage.encode({
    resourceNames: [...some, "n"],
  });
  assertRefused(more, 8, "more than 20000 names");
  // All lists of a request count together.
  const both = DeltaDiscoveryRequestMessage.encode({
    resourceNamesSubscribe: some,
    resourceNamesUnsubscribe: ["n"],
  });
  assertRefused(both, 8, "more than 20000 names", "delta");
});

Deno.test("texts over their limits are refused", () => {
  const longest = "n".repeat(NAME_BYTES_MAX);
  const resourceNames = [longest];
  assertEquals(
    sotw(DiscoveryRequestMessage.encode({ resourceNames })).resourceNames,
    [
      longest,
    ],
  );
  const cases: [
    Parameters<typeof DiscoveryRequestMessage.encode>[0],
    string,
  ][] = [
    [{ resourceNames: [`${longest}n`] }, "a name has 1025 bytes"],
    [{ typeUrl: "t".repeat(REQUEST_TEXT_BYTES_MAX + 1) }, "field 4 has 1025"],
    [{ versionInfo: "v".repeat(2_000) }, "field 1 has 2000 bytes"],
    [{ responseNonce: "v".repeat(2_000) }, "field 5 has 2000 bytes"],
    [
      { node: { id: "n".repeat(NODE_TEXT_MAX + 1) } },
      "a id of 1025 characters",
    ],
    [{ node: { cluster: "n".repeat(NODE_BYTES_MAX) } }, "262148 bytes"],
    [
      {
        node: { clientFeatures: new Array(CLIENT_FEATURES_MAX + 1).fill("f") },
      },
      "65 features",
    ],
    [
      { node: { metadata: structOf({ a: "x".repeat(STRUCT_SIZE_MAX) }) } },
      "more than 65536 characters",
    ],
  ];
  for (const [message, text] of cases) {
    assertRefused(DiscoveryRequestMessage.encode(message), 8, text);
  }
});

Deno.test("a field in very many places is refused", () => {
  const piece = Uint8Array.fromHex("1a01610a00");
  const bytes = new Uint8Array(piece.length * (PIECES_MAX + 1));
  for (let at = 0; at < bytes.length; at += piece.length) {
    bytes.set(piece, at);
  }
  assertRefused(bytes, 8, "field 3 is strewn over more than 64 places");
  const fewer = bytes.subarray(piece.length);
  assertEquals(sotw(fewer).resourceNames.length, PIECES_MAX);
});

Deno.test("of what a client says in a NACK a page is kept", () => {
  const bytes = DiscoveryRequestMessage.encode({
    errorDetail: { code: 3, message: "m".repeat(100_000) },
  });
  assertEquals(sotw(bytes).errorDetail?.message.length, ERROR_MESSAGE_MAX);
});

Deno.test("what is kept of a node is little, whatever Envoy sends", () => {
  // An id, then extensions (field 9), of which Envoy lists some hundreds.
  const extension = Uint8Array.fromHex("4a060a0165120165");
  const node = new Uint8Array(3 + 4_000 * extension.length);
  node.set(Uint8Array.fromHex("0a0165"));
  for (let at = 3; at < node.length; at += extension.length) {
    node.set(extension, at);
  }
  // Field 2 of the request; three bytes of length.
  const head = Uint8Array.of(0x12, ...varint(node.length));
  const request = sotw(Uint8Array.of(...head, ...node));
  assertEquals(Object.keys(request.node!).length, 7);
  assertEquals(JSON.stringify(request.node).length < 200, true);
});

Deno.test("requests are what protobufjs reads in them", async () => {
  await forAll(200, (prng) => {
    const message = {
      versionInfo: text(prng),
      resourceNames: texts(prng),
      typeUrl: prng.pick([...Object.values(TYPE_URLS), text(prng)]),
      responseNonce: text(prng),
      ...(prng.below(2) === 0
        ? {}
        : { errorDetail: { code: prng.below(20), message: text(prng) } }),
    };
    const bytes = DiscoveryRequestMessage.encode(message);
    const { errorDetail, resourceNames, ...rest } = message;
    assertEquals(sotw(bytes), {
      mode: "sotw",
      node: undefined,
      ...rest,
      resourceNames,
      errorDetail,
    });
    const versions = Object.fromEntries(
      texts(prng).map((name) => [name, text(prng)]),
    );
    const initial = { initialResourceVersions: versions };
    assertEquals(
      Object.fromEntries(
        delta(DeltaDiscoveryRequestMessage.encode(initial)).initialVersions,
      ),
      versions,
    );
  });
});

function texts(prng: Prng): string[] {
  return Array.from({ length: prng.below(6) }, () => text(prng));
}

function text(prng: Prng): string {
  const letters = ["a", "/", ":", "é", "漢", "😀", "-"];
  return Array.from(
    { length: prng.below(prng.pick([4, 200])) },
    () => prng.pick(letters),
  ).join("");
}

function varint(value: number): number[] {
  return value < 0x80 ? [value] : [value & 0x7f | 0x80, ...varint(value >>> 7)];
}
