import { assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { GrpcError } from "../grpc/status.ts";
import { decodeResponse, encodeRequest } from "./client_codec.ts";
import type {
  DeltaRequest,
  DiscoveryMode,
  ResponseBody,
  SotwRequest,
} from "./discovery.ts";
import { RequestDecoder } from "./request_decoder.ts";
import { type Resource, TYPE_URLS } from "./resource.ts";
import { encodeAny, pack } from "./any.ts";
import {
  Any,
  Cluster,
  DeltaDiscoveryResponseMessage,
  DiscoveryResponseMessage,
} from "./xds_messages.ts";
import { forAll, type Prng } from "../../tests/support/memory/prng.ts";
import { encodeBody, encodeHead } from "./response_encoder.ts";

const NODE = {
  id: "n",
  cluster: "c",
  metadata: { "tunnel.kind": "proxy", deep: { list: [1, null] } },
  locality: { region: "r", zone: "z", subZone: "" },
  userAgentName: "tunnel",
  userAgentVersion: "0.1.0",
  clientFeatures: ["f"],
};

Deno.test("a server reads what a client asks", () => {
  const decoder = new RequestDecoder();
  const sotw: SotwRequest = {
    mode: "sotw",
    node: NODE,
    typeUrl: TYPE_URLS.cluster,
    versionInfo: "3",
    resourceNames: ["a", "*"],
    responseNonce: "9",
    errorDetail: { code: 3, message: "no" },
  };
  assertEquals(decoder.decode("sotw", encodeRequest(sotw)), sotw);
  const delta: DeltaRequest = {
    mode: "delta",
    node: undefined,
    typeUrl: TYPE_URLS.endpoints,
    subscribe: ["a"],
    unsubscribe: ["b", "c"],
    initialVersions: new Map([["a", "1"], ["__proto__", "2"]]),
    responseNonce: "",
    errorDetail: undefined,
  };
  assertEquals(decoder.decode("delta", encodeRequest(delta)), delta);
});

Deno.test("a resource is called what it calls itself", () => {
  const bytes = DiscoveryResponseMessage.encode({
    versionInfo: "1",
    typeUrl: TYPE_URLS.cluster,
    resources: [pack(Cluster, { name: "one" }), pack(Cluster, {})],
  });
  const { resources } = decodeResponse("sotw", bytes);
  assertEquals(
    resources.map(({ name, version }) => [name, version]),
    [["one", "1"], ["", "1"]],
  );
  const delta = DeltaDiscoveryResponseMessage.encode({
    resources: [{ version: "2", resource: pack(Cluster, { name: "one" }) }],
  });
  assertEquals(decodeResponse("delta", delta).resources[0]?.name, "one");
});

Deno.test("Delta may say that a resource is as it was", () => {
  const bytes = DeltaDiscoveryResponseMessage.encode({
    resources: [{ name: "a", version: "2" }],
  });
  assertEquals(decodeResponse("delta", bytes).resources, [
    { name: "a", version: "2", typeUrl: "", value: new Uint8Array(0) },
  ]);
});

Deno.test("a broken resource spoils no other", () => {
  const bytes = DiscoveryResponseMessage.encode({
    resources: [
      { typeUrl: TYPE_URLS.cluster, value: Uint8Array.of(0x0a, 9) },
      pack(Cluster, { name: "whole" }),
    ],
  });
  const { resources } = decodeResponse("sotw", bytes);
  assertEquals(resources.map(({ name }) => name), ["", "whole"]);
});

Deno.test("a broken response is the server's fault", () => {
  for (const mode of ["sotw", "delta"] as const) {
    for (const hex of ["1205", "12020a05", "0a02c328"]) {
      const error = assertThrows(
        () => decodeResponse(mode, Uint8Array.fromHex(hex)),
        GrpcError,
        "Cannot read a discovery response of ",
      );
      assertEquals(error.code, 3);
    }
  }
});

Deno.test("fields that nobody here knows pass", () => {
  // canary (3), control_plane (6 of SotW), resource_errors (7).
  const bytes = Uint8Array.fromHex("1801" + "32030a0178" + "3a00" + "2a016e");
  assertEquals(decodeResponse("sotw", bytes), {
    ...{ typeUrl: "", version: "", nonce: "n" },
    ...{ resources: [], removed: [] },
  });
});

function resource(name: string, version = "v"): Resource {
  return {
    ...{ kind: "cluster", name, version },
    any: encodeAny(Cluster, { name }),
  };
}

function bodySaying(changes: Partial<ResponseBody> = {}): ResponseBody {
  return {
    typeUrl: TYPE_URLS.cluster,
    resources: [resource("a", "1"), resource("b", "2")],
    removed: [],
    version: "7",
    ...changes,
  };
}

/** The message as a client gets it. */
function message(
  mode: DiscoveryMode,
  said: ResponseBody,
  nonce: string,
): Uint8Array {
  return Uint8Array.of(
    ...encodeHead(mode, nonce, ""),
    ...encodeBody(mode, said),
  );
}

Deno.test("clients receive who answers them", () => {
  const controlPlane = { identifier: "server-1" };
  const sotw = encodeHead("sotw", "n", "server-1");
  assertEquals(DiscoveryResponseMessage.decode(sotw), {
    nonce: "n",
    controlPlane,
  });
  const delta = encodeHead("delta", "n", "server-1");
  assertEquals(DeltaDiscoveryResponseMessage.decode(delta), {
    nonce: "n",
    controlPlane,
  });
});

Deno.test("a SotW response says what is not there, and why", () => {
  const said = bodySaying({ resources: [], absent: ["é", "b"] });
  const detail = { code: 5, message: "there is no such resource" };
  assertEquals(DiscoveryResponseMessage.decode(message("sotw", said, "n")), {
    ...{ versionInfo: "7", typeUrl: TYPE_URLS.cluster, nonce: "n" },
    resourceErrors: ["é", "b"].map((name) => ({
      resourceName: { name },
      errorDetail: detail,
    })),
  });
});

Deno.test("one body serves all clients that are sent the same", () => {
  const said = bodySaying();
  const bytes = encodeBody("sotw", said);
  assertStrictEquals(encodeBody("sotw", { ...said }), bytes);
  // The other mode has a body of its own beside it.
  const delta = encodeBody("delta", said);
  assertEquals(delta === bytes, false);
  assertStrictEquals(encodeBody("delta", { ...said }), delta);
  assertStrictEquals(encodeBody("sotw", said), bytes);
});

Deno.test("one array in bodies that differ otherwise makes other bodies", () => {
  const said = bodySaying();
  for (
    const other of [
      { ...said, version: "8" },
      { ...said, typeUrl: TYPE_URLS.listener },
      { ...said, removed: ["gone"] },
      { ...said, resources: [] },
    ]
  ) {
    encodeBody("delta", said);
    const received = decodeResponse("delta", message("delta", other, "1"));
    assertEquals(received.version, other.version);
    assertEquals(received.typeUrl, other.typeUrl);
    assertEquals(received.removed, other.removed);
    assertEquals(received.resources.length, other.resources.length);
  }
});

Deno.test("whatever is said, both decoders read it", async () => {
  await forAll(200, (prng) => {
    const said = bodySaying({
      version: text(prng),
      removed: many(prng, () => text(prng)),
      resources: many(prng, () => resource(text(prng), text(prng))),
    });
    const nonce = text(prng);
    const sotw = decodeResponse("sotw", message("sotw", said, nonce));
    assertEquals(sotw, {
      ...{ typeUrl: said.typeUrl, version: said.version, nonce, removed: [] },
      resources: said.resources.map(({ name, any }) => ({
        ...{ name, version: said.version, typeUrl: TYPE_URLS.cluster },
        value: Any.decode(any).value ?? new Uint8Array(0),
      })),
    });
    const delta = decodeResponse("delta", message("delta", said, nonce));
    assertEquals(
      delta.resources.map(({ name, version }) => [name, version]),
      said.resources.map(({ name, version }) => [name, version]),
    );
    assertEquals(delta.removed, said.removed);
    const oracle = DeltaDiscoveryResponseMessage.decode(
      message("delta", said, nonce),
    );
    assertEquals(oracle.removedResources ?? [], said.removed);
    assertEquals(oracle.resources?.length ?? 0, said.resources.length);
  });
});

function many<T>(prng: Prng, make: () => T): T[] {
  return Array.from({ length: prng.below(5) }, make);
}

function text(prng: Prng): string {
  const letters = ["a", "/", ":", "é", "漢", "😀", "-"];
  return Array.from(
    { length: prng.below(prng.pick([4, 300])) },
    () => prng.pick(letters),
  ).join("");
}
