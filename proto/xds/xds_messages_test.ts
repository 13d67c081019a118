import { assertEquals, assertThrows } from "@std/assert";
import { GrpcError } from "../grpc/status.ts";
import {
  decodeAny,
  durationOf,
  encodeAny,
  encodeNamesakes,
  pack,
  PROXY_ADDRESS_KEY,
  unpack,
} from "./any.ts";
import {
  Address,
  Cluster,
  Cluster_DiscoveryType,
  Cluster_LbPolicy,
  ClusterLoadAssignment,
  HttpConnectionManager,
  HttpProtocolOptions,
  Listener,
  Metadata,
  RouteConfiguration,
  Router,
  Struct,
  TcpProxy,
  type Value,
} from "./xds_messages.ts";
import { TYPE_URLS } from "./resource.ts";
import { canonicalJson } from "./canonical_json.ts";
import {
  plainOf,
  STRUCT_DEPTH_MAX,
  STRUCT_SIZE_MAX,
  structOf,
} from "./struct_data.ts";

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
  assertEquals(durationOf(10_800_000), { seconds: 10_800, nanos: 0 });
});

Deno.test("resources are JSON as protobuf has it", () => {
  const options = pack(HttpProtocolOptions, {
    explicitHttpConfig: { http2ProtocolOptions: {} },
  });
  const any = pack(Cluster, {
    name: "default/a:80",
    type: Cluster_DiscoveryType.EDS,
    lbPolicy: Cluster_LbPolicy.RING_HASH,
    connectTimeout: durationOf(250),
    ignoreHealthOnHostRemoval: true,
    circuitBreakers: { thresholds: [{ maxRetries: { value: 3 } }] },
    ringHashLbConfig: { minimumRingSize: { value: 1_024 } },
    outlierDetection: {
      enforcingConsecutive_5xx: { value: 0 },
      baseEjectionTime: durationOf(10_000),
    },
    metadata: { filterMetadata: { tunnel: structOf({ a: [1, "b"] }) } },
    typedExtensionProtocolOptions: { http: options },
  });
  assertEquals(canonicalJson(any), {
    "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
    name: "default/a:80",
    type: "EDS",
    connectTimeout: "0.250s",
    lbPolicy: "RING_HASH",
    circuitBreakers: { thresholds: [{ maxRetries: 3 }] },
    outlierDetection: {
      enforcingConsecutive5xx: 0,
      baseEjectionTime: "10s",
    },
    ringHashLbConfig: { minimumRingSize: "1024" },
    metadata: { filterMetadata: { tunnel: { a: [1, "b"] } } },
    ignoreHealthOnHostRemoval: true,
    typedExtensionProtocolOptions: {
      http: {
        "@type":
          "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        explicitHttpConfig: { http2ProtocolOptions: {} },
      },
    },
  });
});

Deno.test("64 bits are texts, and what nobody knows is shown as it is", () => {
  const draws = { hostSelectionRetryMaxAttempts: 10 };
  const routes = pack(RouteConfiguration, {
    virtualHosts: [{
      name: "a",
      routes: [{ route: { cluster: "b", retryPolicy: draws } }],
    }],
  });
  const [host] = (canonicalJson(routes) as Record<string, unknown>)
    .virtualHosts as { routes: unknown[] }[];
  assertEquals(host!.routes, [{
    route: {
      cluster: "b",
      retryPolicy: { hostSelectionRetryMaxAttempts: "10" },
    },
  }]);
  const value = Uint8Array.of(1, 2);
  const unknownType = { typeUrl: "type.googleapis.com/a.B", value };
  assertEquals(canonicalJson(unknownType), {
    "@type": "type.googleapis.com/a.B",
    value: "AQI=",
  });
  const broken = canonicalJson({ ...routes, value: Uint8Array.of(10, 99) });
  assertEquals(Object.keys(broken as object), ["@type", "error"]);
});

const over = (data: Record<string, unknown>) =>
  plainOf(Struct.decode(Struct.encode(structOf(data))));

Deno.test("what JSON can say survives the way over", () => {
  const data = {
    text: "é",
    empty: "",
    zero: 0,
    half: -0.5,
    no: false,
    nothing: null,
    list: [1, "two", [true, null], {}],
    object: { a: { b: [] } },
  };
  assertEquals(over(data), data);
  assertEquals(over({}), {});
});

Deno.test("what JSON leaves out is left out", () => {
  assertEquals(over({ a: undefined, b: () => 1, c: [undefined, 1] }), {
    c: [null, 1],
  });
});

Deno.test("members have one order on the wire", () => {
  const one = Struct.encode(structOf({ b: { d: 1, c: 2 }, a: 3 }));
  const other = Struct.encode(structOf({ a: 3, b: { c: 2, d: 1 } }));
  assertEquals(one, other);
});

Deno.test("a key that JavaScript knows is a key like any other", () => {
  const data = JSON.parse('{"__proto__": {"polluted": true}, "toString": 1}');
  const read = over(data);
  assertEquals(Object.keys(read).sort(), ["__proto__", "toString"]);
  assertEquals(Object.getPrototypeOf(read), Object.prototype);
  assertEquals("polluted" in read, false);
});

Deno.test("a struct is read to its deepest level, and no deeper", () => {
  const nested = (levels: number): Struct => {
    let value: Value = { stringValue: "x" };
    for (let level = 1; level < levels; level++) {
      value = level % 2 === 0
        ? { listValue: { values: [value] } }
        : { structValue: { fields: { k: value } } };
    }
    return { fields: { k: value } };
  };
  plainOf(nested(STRUCT_DEPTH_MAX));
  const error = assertThrows(
    () => plainOf(nested(STRUCT_DEPTH_MAX + 1)),
    GrpcError,
    "more than 16 levels deep",
  );
  assertEquals(error.code, 8);
});

Deno.test("bytes of a struct that is endlessly deep are refused", () => {
  // value { struct_value { fields { value: … } } }, from the inside.
  let bytes: Uint8Array = Uint8Array.fromHex("0a021200");
  for (let level = 0; level < 500; level++) {
    bytes = field(1, field(2, field(5, bytes)));
  }
  assertThrows(() => Struct.decode(bytes), GrpcError, "max depth");
});

Deno.test("a struct has so many characters and values, and no more", () => {
  // One for the value, two for the key.
  plainOf(structOf({ ab: "x".repeat(STRUCT_SIZE_MAX - 3) }));
  for (
    const data of [
      { ab: "x".repeat(STRUCT_SIZE_MAX - 2) },
      { ["k".repeat(STRUCT_SIZE_MAX)]: true },
      { list: new Array(STRUCT_SIZE_MAX).fill(null) },
    ]
  ) {
    const error = assertThrows(() => plainOf(structOf(data)), GrpcError);
    assertEquals(error.code, 8);
  }
});

function field(number: number, bytes: Uint8Array): Uint8Array {
  const head = [number << 3 | 2];
  let rest = bytes.length;
  for (; rest > 0x7f; rest >>>= 7) head.push(rest & 0x7f | 0x80);
  return Uint8Array.of(...head, rest, ...bytes);
}
