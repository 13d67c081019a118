import { assertEquals, assertThrows } from "@std/assert";
import { GrpcError } from "../grpc/status.ts";
import {
  decodeAny,
  durationOf,
  encodeAny,
  encodeNamesakes,
  msOf,
  pack,
  PROXY_ADDRESS_KEY,
  unpack,
} from "./any.ts";
import {
  Address,
  Cluster,
  ClusterLoadAssignment,
  HttpConnectionManager,
  Listener,
  Metadata,
  Router,
  TcpProxy,
} from "./xds_messages.ts";
import { TYPE_URLS } from "./resource.ts";

/** The least that all gRPC clients take. */
const API_LISTENER = {
  name: "echo",
  apiListener: {
    apiListener: pack(HttpConnectionManager, {
      rds: {
        configSource: { ads: {}, resourceApiVersion: 2 },
        routeConfigName: "default/echo:80",
      },
      httpFilters: [{ name: "router", typedConfig: pack(Router, {}) }],
    }),
  },
};

Deno.test("a listener is on the wire as protobuf has it", () => {
  // Written by hand: name 1, api_listener 19 { api_listener 1: Any }.
  const bytes = Listener.encode({
    name: "a",
    apiListener: { apiListener: { typeUrl: "t", value: Uint8Array.of(7) } },
  });
  assertEquals(bytes.toHex(), "0a0161" + "9a01080a060a01741201" + "07");
});

Deno.test("namesakes are encoded as if each was encoded by itself", () => {
  const { apiListener } = API_LISTENER;
  const names = ["echo", "", "écho.default", "x".repeat(300)];
  assertEquals(
    encodeNamesakes(Listener, names, { apiListener }),
    names.map((name) =>
      encodeAny(Listener, { ...name === "" ? {} : { name }, apiListener })
    ),
  );
});

Deno.test("what is packed is unpacked, and only as what it is", () => {
  const bytes = encodeAny(Listener, API_LISTENER);
  const whole = decodeAny(Listener, bytes);
  assertEquals(whole, API_LISTENER);
  const manager = unpack(
    HttpConnectionManager,
    whole?.apiListener?.apiListener,
  );
  assertEquals(manager?.rds?.routeConfigName, "default/echo:80");
  assertEquals(manager?.rds?.configSource, { ads: {}, resourceApiVersion: 2 });
  assertEquals(unpack(Router, manager?.httpFilters?.[0]?.typedConfig), {});
  assertEquals(decodeAny(Cluster, bytes), undefined);
  assertEquals(unpack(Cluster, undefined), undefined);
});

Deno.test("type URLs of resources are those of their codecs", () => {
  assertEquals(TYPE_URLS.cluster, Cluster.typeUrl);
  assertEquals(TYPE_URLS.endpoints, ClusterLoadAssignment.typeUrl);
  assertEquals(TYPE_URLS.listener, Listener.typeUrl);
});

Deno.test("what is missing stays missing, and an empty message is there", () => {
  assertEquals(Cluster.decode(Cluster.encode({})), {});
  const empty = { endpoints: [{ locality: {} }] };
  assertEquals(
    ClusterLoadAssignment.decode(ClusterLoadAssignment.encode(empty)),
    empty,
  );
});

Deno.test("undefined fields are as if they were missing", () => {
  const bytes = TcpProxy.encode({ statPrefix: "s", cluster: undefined });
  assertEquals(TcpProxy.decode(bytes), { statPrefix: "s" });
});

Deno.test("metadata keeps text and typed values apart, whatever the keys", () => {
  const proxy = { socketAddress: { address: "127.0.0.1", portValue: 8080 } };
  const fields = JSON.parse('{"__proto__": {"stringValue": "x"}}');
  const said = {
    filterMetadata: { tunnel: { fields } },
    typedFilterMetadata: { [PROXY_ADDRESS_KEY]: pack(Address, proxy) },
  };
  const received = Metadata.decode(Metadata.encode(said));
  assertEquals(
    JSON.stringify(received.filterMetadata),
    JSON.stringify(said.filterMetadata),
  );
  assertEquals(
    unpack(Address, received.typedFilterMetadata?.[PROXY_ADDRESS_KEY]),
    proxy,
  );
});

Deno.test("fields that nobody here knows pass", () => {
  // Field 1000 with a text, field 1001 with a varint, then a name.
  const bytes = Uint8Array.fromHex("c23e0178" + "c83e07" + "0a0163");
  assertEquals(Cluster.decode(bytes), { name: "c" });
});

Deno.test("bytes that are no such message are the peer's fault", () => {
  const error = assertThrows(
    () => Cluster.decode(Uint8Array.of(0x0a, 9)),
    GrpcError,
    "Cannot read a envoy.config.cluster.v3.Cluster: ",
  );
  assertEquals(error.code, 3);
  assertThrows(() => decodeAny(Cluster, Uint8Array.of(0x12, 9)), GrpcError);
});

Deno.test("durations keep their milliseconds", () => {
  assertEquals(durationOf(0), { seconds: 0, nanos: 0 });
  assertEquals(durationOf(1_500), { seconds: 1, nanos: 500_000_000 });
  assertEquals(durationOf(0.25), { seconds: 0, nanos: 250_000 });
  for (const ms of [0, 1, 999, 60_000, 10_800_000]) {
    assertEquals(msOf(durationOf(ms)), ms);
  }
  assertEquals(msOf({}), 0);
});
