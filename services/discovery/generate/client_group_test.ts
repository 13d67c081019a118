import { assert, assertEquals, assertNotEquals } from "@std/assert";
import type { DiscoveryNode } from "../../../proto/xds/discovery.ts";
import {
  endpointOf,
  serviceOf,
} from "../../../tests/support/watch/scripted_source.ts";
import { type Endpoint, SEES_EVERYTHING } from "../../catalog/model/model.ts";
import {
  type ClientGroup,
  clientGroup,
  clientGroupOf,
  type Form,
  FORMS,
  type Variant,
  variantFor,
  variantsOf,
} from "./client_group.ts";

const CONNECT = { host: "127.0.0.1", port: 3128 };

function node(rest: Partial<DiscoveryNode> = {}): DiscoveryNode {
  return {
    ...{ id: "n1", cluster: "", metadata: {}, clientFeatures: [] },
    locality: { region: "", zone: "", subZone: "" },
    ...{ userAgentName: "", userAgentVersion: "" },
    ...rest,
  };
}

Deno.test("metadata decides what a client is, then its user agent", () => {
  const cases: readonly (readonly [Partial<DiscoveryNode>, Form])[] = [
    [{ userAgentName: "gRPC Go" }, "grpc"],
    [{ userAgentName: "gRPC C-core linux Python" }, "grpc"],
    [{ userAgentName: "gRPC Node Pure JS" }, "grpc"],
    [{ userAgentName: "envoy" }, "envoy"],
    [{}, "envoy"],
    [{ metadata: { tunnel: { kind: "grpc" } } }, "grpc"],
    [{ metadata: { "tunnel.kind": "service" } }, "service"],
    [
      { userAgentName: "gRPC Go", metadata: { tunnel: { kind: "envoy" } } },
      "envoy",
    ],
    [
      { userAgentName: "gRPC Go", metadata: { tunnel: { kind: "other" } } },
      "grpc",
    ],
    [{ metadata: { tunnel: "service" } }, "envoy"],
    [{ metadata: { tunnel: null } }, "envoy"],
  ];
  for (const [fields, form] of cases) {
    const facts = { visible: SEES_EVERYTHING };
    assertEquals(clientGroupOf(node(fields), facts).form, form);
  }
});

Deno.test("only a client that asks for a CONNECT proxy receives it, and no proxy of ours", () => {
  const facts = { visible: SEES_EVERYTHING, connectProxy: CONNECT };
  const of = (metadata: Record<string, unknown>, userAgentName = "envoy") =>
    clientGroupOf(node({ metadata, userAgentName }), facts).connectProxy;
  assertEquals(of({}), undefined);
  assertEquals(of({ tunnel: { http_11_proxy: true } }), CONNECT);
  assertEquals(of({ "tunnel.http_11_proxy": true }, "gRPC Go"), CONNECT);
  assertEquals(of({ tunnel: { http_11_proxy: "true" } }), undefined);
  assertEquals(
    of({ tunnel: { http_11_proxy: true, kind: "service" } }),
    undefined,
  );
  const asks = node({ metadata: { tunnel: { http_11_proxy: true } } });
  const none = clientGroupOf(asks, { visible: SEES_EVERYTHING });
  assertEquals(none.connectProxy, undefined);
});

Deno.test("groups have one key exactly where they receive the same", () => {
  const some = { id: "some", sees: () => false };
  const keys = [
    clientGroup("grpc", SEES_EVERYTHING),
    clientGroup("envoy", SEES_EVERYTHING),
    clientGroup("grpc", some),
    clientGroup("grpc", SEES_EVERYTHING, { zone: "some" }),
    clientGroup("grpc", SEES_EVERYTHING, { connectProxy: CONNECT }),
  ].map(({ key }) => key);
  assertEquals(new Set(keys).size, keys.length);
  const locality = { region: "r", zone: "z", subZone: "s" };
  const one = clientGroupOf(node({ id: "n1", locality }), { visible: some });
  const other = clientGroupOf(node({ id: "n2", locality }), { visible: some });
  assertEquals(one.key, other.key);
  assertEquals(one.zone, "z");
  const elsewhere = { ...locality, zone: "y" };
  assertNotEquals(
    clientGroupOf(node({ locality: elsewhere }), { visible: some }).key,
    one.key,
  );
});

Deno.test("what makes no difference to a service does not count", () => {
  const near = serviceOf("a", 80, { policy: { zoneAware: true } });
  const all = { zone: "z", connectProxy: CONNECT };
  const grpc = clientGroup("grpc", SEES_EVERYTHING, all);
  const direct = endpointOf("10.0.0.1:80");
  const behind = endpointOf("10.0.0.1:80", { via: { kind: "agent" } });
  assertEquals(variantFor(serviceOf("a"), [behind], grpc), {
    form: "grpc",
    connectProxy: CONNECT,
  });
  assertEquals(variantFor(near, [direct, behind], grpc), {
    form: "grpc",
    ...all,
  });
  // Whose proxy it is counts where endpoints are reached by it, and only there.
  const elsewhere = clientGroup("grpc", SEES_EVERYTHING, {
    connectProxy: { host: "127.0.0.1", port: 3129 },
  });
  const without = clientGroup("grpc", SEES_EVERYTHING);
  const of = (one: ClientGroup, endpoint: Endpoint) =>
    variantFor(serviceOf("a"), [endpoint], one);
  assertEquals(of(grpc, direct), of(elsewhere, direct));
  assertNotEquals(of(grpc, behind), of(elsewhere, behind));
  assertNotEquals(of(grpc, direct), of(without, direct));
  const proxy = clientGroup("service", SEES_EVERYTHING, all);
  assertEquals(variantFor(near, [behind], proxy), { form: "service" });
});

Deno.test("whatever makes a difference for a group is among what may", () => {
  const endpoints = [
    [endpointOf("10.0.0.1:80")],
    [endpointOf("10.0.0.1:80", { via: { kind: "agent" } })],
  ];
  const connectProxy = { host: "127.0.0.1", port: 3128 };
  for (const form of FORMS) {
    for (const rest of [{}, { connectProxy }, { zone: "a" }]) {
      for (const more of [rest, { ...rest, connectProxy, zone: "a" }]) {
        const of = clientGroup(form, SEES_EVERYTHING, more);
        const all = variantsOf(of);
        for (const zoneAware of [true, false]) {
          const service = serviceOf("a", 80, { policy: { zoneAware } });
          for (const list of endpoints) {
            const one = variantFor(service, list, of);
            assert(all.some((other) => isEqual(one, other)), of.key);
          }
        }
      }
    }
  }
});

function isEqual(one: Variant, other: Variant): boolean {
  return one.form === other.form && one.zone === other.zone &&
    one.connectProxy?.port === other.connectProxy?.port;
}
