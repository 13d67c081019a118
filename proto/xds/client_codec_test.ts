import { assertEquals, assertThrows } from "@std/assert";
import { GrpcError } from "../grpc/status.ts";
import { decodeResponse, encodeRequest } from "./client_codec.ts";
import type { DeltaRequest, SotwRequest } from "./discovery.ts";
import { RequestDecoder } from "./request_decoder.ts";
import { TYPE_URLS } from "./resource.ts";
import { pack } from "./any.ts";
import {
  Cluster,
  DeltaDiscoveryResponseMessage,
  DiscoveryResponseMessage,
} from "./xds_messages.ts";

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
