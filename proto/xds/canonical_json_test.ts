import { assertEquals } from "@std/assert";
import { canonicalJson } from "./canonical_json.ts";
import { durationOf, pack } from "./any.ts";
import {
  Cluster,
  Cluster_DiscoveryType,
  Cluster_LbPolicy,
  HttpProtocolOptions,
  RouteConfiguration,
} from "./xds_messages.ts";
import { structOf } from "./struct_data.ts";

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
