import { assertEquals } from "@std/assert";
import type { EndpointSlice } from "../../../../neighbours/kubernetes/objects.ts";
import { EndpointSlices } from "./endpoint_slices.ts";

type Endpoints = NonNullable<EndpointSlice["endpoints"]>;
type Ports = NonNullable<EndpointSlice["ports"]>;

const HTTP: Ports = [{ name: "http", port: 8080, protocol: "TCP" }];

function slice(
  name: string,
  endpoints: Endpoints | null,
  ports: Ports | null = HTTP,
  addressType: EndpointSlice["addressType"] = "IPv4",
): EndpointSlice {
  return {
    metadata: {
      namespace: "shop",
      name,
      labels: { "kubernetes.io/service-name": "web" },
    },
    addressType,
    endpoints,
    ports,
  };
}

function joined(...slices: readonly EndpointSlice[]) {
  const all = new EndpointSlices();
  for (const each of slices) assertEquals(all.put(each), "shop/web");
  return all.endpointsOf("shop/web")!;
}

Deno.test("slices of a service are one list, in the order of their names", () => {
  const endpoints = joined(
    slice("web-2", [{ addresses: ["10.0.0.2"] }]),
    slice("web-1", [{ addresses: ["10.0.0.1", "10.0.0.9"] }]),
    slice("web-6", [{ addresses: ["FD00::0001"] }], HTTP, "IPv6"),
    slice("web-f", [{ addresses: ["Web.Example"] }], HTTP, "FQDN"),
  );
  assertEquals(
    endpoints.map(({ address }) => address),
    ["10.0.0.1", "10.0.0.2", "fd00::1", "web.example"],
  );
  assertEquals(endpoints[0]!.ports, [{ name: "http", port: 8080 }]);
});

Deno.test("an endpoint in two slices is one, in its better state", () => {
  const away = { ready: false, serving: true, terminating: true };
  const endpoints = joined(
    slice("web-1", [{ addresses: ["10.0.0.1"], conditions: away }]),
    slice("web-2", [{ addresses: ["10.0.0.1"] }]),
    slice("web-3", [{ addresses: ["10.0.0.1"], conditions: away }]),
  );
  assertEquals(endpoints.map(({ state }) => state), ["ready"]);
});

Deno.test("one address with other ports is another endpoint", () => {
  const host = { addresses: ["10.0.0.1"] };
  const endpoints = joined(
    slice("web-1", [host], [{ name: "b", port: 2 }, { name: "a", port: 1 }]),
    slice("web-2", [host], [{ name: "a", port: 1 }, { name: "b", port: 2 }]),
    slice("web-3", [host], [{ name: "a", port: 3 }]),
  );
  assertEquals(endpoints.map(({ ports }) => ports.map(({ port }) => port)), [
    [1, 2],
    [3],
  ]);
});

Deno.test("conditions become states, and what is absent means well", () => {
  const cases = [
    [undefined, "ready"],
    [{}, "ready"],
    [{ ready: true, terminating: true }, "ready"],
    [{ ready: false }, "unready"],
    [{ ready: false, serving: true }, "unready"],
    [{ ready: false, serving: true, terminating: true }, "serving"],
    [{ ready: false, serving: false, terminating: true }, "terminating"],
    [{ ready: false, terminating: true }, "terminating"],
  ] as const;
  for (const [conditions, state] of cases) {
    const given = conditions === undefined ? {} : { conditions };
    const [endpoint] = joined(
      slice("web", [{ addresses: ["10.0.0.1"], ...given }]),
    );
    assertEquals(endpoint!.state, state);
  }
});

Deno.test("node, zone and hints are kept", () => {
  const [endpoint] = joined(slice("web", [{
    addresses: ["10.0.0.1"],
    nodeName: "node1",
    zone: "a",
    hints: { forZones: [{ name: "a" }, { name: "b" }] },
  }]));
  assertEquals(
    [endpoint!.node, endpoint!.zone, endpoint!.forZones],
    ["node1", "a", ["a", "b"]],
  );
});

Deno.test("ports without a name, without a number and of SCTP", () => {
  const [endpoint] = joined(slice("web", [{ addresses: ["10.0.0.1"] }], [
    { port: 80 },
    { name: "any" },
    { name: "phone", port: 5060, protocol: "SCTP" },
  ]));
  assertEquals(endpoint!.ports, [{ name: "", port: 80 }]);
  assertEquals(joined(slice("web", null, null)), []);
});

Deno.test("a slice that goes takes its endpoints, the last one the service's list", () => {
  const all = new EndpointSlices();
  const [one, two] = [
    slice("web-1", [{ addresses: ["10.0.0.1"] }]),
    slice("web-2", [{ addresses: ["10.0.0.2"] }]),
  ] as const;
  all.put(one);
  all.put(two);
  all.remove(one);
  assertEquals(
    all.endpointsOf("shop/web")?.map(({ address }) => address),
    ["10.0.0.2"],
  );
  all.remove(two);
  assertEquals(all.endpointsOf("shop/web"), undefined);
  assertEquals(all.put({ ...one, metadata: { name: "x" } }), undefined);
});
