/**
 * What real clients refuse, and what they take and then cannot use: every row
 * was seen with Envoy 1.40, grpc-go 1.85, C-core 1.85 and grpc-js-xds 1.14. What
 * each client gets of one of everything is text in `tests/golden/discovery/`.
 */

import { assert, assertEquals } from "@std/assert";
import {
  endpointOf,
  serviceOf,
} from "../../../tests/support/watch/scripted_source.ts";
import { assertTaken } from "../../../tests/support/xds/rules/validation.ts";
import { resourceJson } from "../../../tests/support/xds/resource_data.ts";
import type {
  Endpoint,
  HealthCheck,
  Service,
  ServicePort,
} from "../../catalog/model/model.ts";
import type { ResourceKind } from "../../../proto/xds/resource.ts";
import type { Variant } from "./client_group.ts";
import { generateService } from "./generate_service.ts";

const CONNECT = { host: "127.0.0.1", port: 3128 };

/** What becomes of a service: messages by kind and name, and what does not. */
function made(
  variant: Variant,
  service: Service,
  ...endpoints: readonly Endpoint[]
) {
  const { claims, unserved } = generateService({ service, endpoints }, variant);
  for (const { resource } of claims) assertTaken(resource);
  const all = (kind: ResourceKind) =>
    claims.filter(({ resource }) => resource.kind === kind)
      .map(({ resource }) => resourceJson(resource.any));
  return {
    all,
    one(kind: ResourceKind) {
      const [only] = all(kind);
      assert(only !== undefined, `no ${kind}`);
      return only;
    },
    names: claims.map(({ resource: { kind, name } }) => `${kind} ${name}`),
    reasons: unserved.map(({ reason }) => reason),
  };
}

function withPort(port: Partial<ServicePort>, rest: Partial<Service> = {}) {
  const ports = [{ name: "", port: 80, protocol: "tcp" as const, ...port }];
  return serviceOf("a", 80, { ports, ...rest });
}

const GRPC: Variant = { form: "grpc" };
const ENVOY: Variant = { form: "envoy" };
const BOTH = [GRPC, ENVOY] as const;
const A = serviceOf("a");
const ENDPOINT = endpointOf("10.0.0.1:80");

Deno.test("an assignment without endpoints is sent, and has no localities", () => {
  const unready = endpointOf("10.0.0.1:80", { state: "unready" });
  for (const endpoints of [[], [unready]]) {
    for (const variant of BOTH) {
      const { clusterName, endpoints: localities } = made(
        variant,
        A,
        ...endpoints,
      ).one("endpoints");
      assertEquals([clusterName, localities], ["default/a:80", undefined]);
    }
  }
});

/** Addresses of an assignment, by priority. */
function tiers(
  variant: Variant,
  service: Service,
  ...endpoints: readonly Endpoint[]
): string[][] {
  const { endpoints: localities = [] } = made(variant, service, ...endpoints)
    .one("endpoints");
  const found: string[][] = [];
  for (const { priority = 0, lbEndpoints } of localities) {
    for (const { endpoint } of lbEndpoints) {
      const { address, portValue } = endpoint.address.socketAddress;
      (found[priority] ??= []).push(`${address}:${portValue}`);
    }
  }
  return found;
}

Deno.test("who gets connections is decided as by our own proxies", () => {
  const at = (host: number, state: Endpoint["state"]) =>
    endpointOf(`10.0.0.${host}:80`, { state });
  for (const variant of BOTH) {
    const cases = [
      [[at(1, "ready"), at(2, "serving"), at(3, "unready")], ["10.0.0.1:80"]],
      [[at(1, "terminating"), at(2, "serving")], ["10.0.0.2:80"]],
    ] as const;
    for (const [endpoints, expected] of cases) {
      assertEquals(tiers(variant, A, ...endpoints), [[...expected]]);
    }
    // Left out who cannot be reached, before it is asked who is the best.
    assertEquals(
      tiers(variant, A, endpointOf("web.internal:80"), at(2, "serving")),
      [["10.0.0.2:80"]],
    );
  }
});

Deno.test("an endpoint is sent once: gRPC refuses addresses that are there twice", () => {
  const other = endpointOf("10.0.0.1:80", { state: "unready" });
  for (const variant of BOTH) {
    assertEquals(tiers(variant, A, other, ENDPOINT, ENDPOINT), [
      ["10.0.0.1:80"],
    ]);
  }
});

Deno.test("near endpoints come first, and no priority is left out", () => {
  const inZone = (host: number, zone: string) =>
    endpointOf(`10.0.0.${host}:80`, { zone });
  const near = serviceOf("a", 80, { policy: { zoneAware: true } });
  const endpoints = [inZone(1, "b"), inZone(2, "a"), inZone(3, "c")];
  for (const { form } of BOTH) {
    assertEquals(tiers({ form, zone: "a" }, near, ...endpoints), [
      ["10.0.0.2:80"],
      ["10.0.0.1:80", "10.0.0.3:80"],
    ]);
    assertEquals(tiers({ form, zone: "x" }, near, ...endpoints), [
      ["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"],
    ]);
    const localities = made({ form, zone: "a" }, near, ...endpoints)
      .one("endpoints").endpoints;
    assertEquals(
      localities.map(({ locality }: { locality: unknown }) => locality),
      [{ zone: "a" }, {}],
    );
    const meant = endpointOf("10.0.0.9:80", { zone: "z", forZones: ["x"] });
    assertEquals(tiers({ form, zone: "x" }, near, ...endpoints, meant)[0], [
      "10.0.0.9:80",
    ]);
  }
});

Deno.test("weights count where the service wants it, and gRPC takes them of localities", () => {
  const heavy = endpointOf("10.0.0.2:80", { weight: 9 });
  const also = endpointOf("10.0.0.3:80", { weight: 9 });
  const weighted = serviceOf("a", 80, { policy: { balance: "weighted" } });
  const [envoy] = made(ENVOY, weighted, ENDPOINT, heavy).one("endpoints")
    .endpoints;
  const weights = (locality: typeof envoy) =>
    locality.lbEndpoints.map(
      (one: { loadBalancingWeight?: { value: number } }) =>
        one.loadBalancingWeight?.value,
    );
  assertEquals(weights(envoy), [undefined, 9]);
  const localities = made(GRPC, weighted, ENDPOINT, heavy, also)
    .one("endpoints").endpoints;
  assertEquals(
    localities.map((one: typeof envoy) => [
      one.locality.subZone,
      one.loadBalancingWeight.value,
      one.lbEndpoints.length,
    ]),
    [["weight-1", 1, 1], ["weight-9", 18, 2]],
  );
  // For the others everybody is the same.
  const [plain] = made(ENVOY, A, ENDPOINT, heavy).one("endpoints").endpoints;
  assertEquals(weights(plain), [undefined, undefined]);
});

Deno.test("a name without a port is the first for gRPC, or the first of TCP", () => {
  const port = (number: number, rest: Partial<ServicePort> = {}) => ({
    ...{ name: `p${number}`, port: number, protocol: "tcp" as const },
    ...rest,
  });
  const of = (...ports: readonly ServicePort[]) => {
    const listeners = made(GRPC, serviceOf("x/a", 80, { ports }))
      .all("listener");
    const found = listeners.find(({ name }) => name === "a.x");
    return found?.apiListener.apiListener.rds.routeConfigName;
  };
  assertEquals(of(port(1), port(2)), "x/a:1");
  assertEquals(of(port(1), port(2, { appProtocol: "grpc" })), "x/a:2");
  assertEquals(of(port(1, { protocol: "udp" }), port(2)), "x/a:2");
  assertEquals(of(port(1, { protocol: "udp" })), undefined);
});

Deno.test("Envoy listens where a service is configured to, or on loopback at its port", () => {
  const where = (port: Partial<ServicePort>) =>
    made(ENVOY, withPort(port)).one("listener").address.socketAddress;
  assertEquals(where({}), { address: "127.0.0.1", portValue: 80 });
  assertEquals(where({ listen: { port: 8080 } }), {
    address: "127.0.0.1",
    portValue: 8080,
  });
  assertEquals(where({ listen: { host: "::1", port: 8080 } }), {
    address: "::1",
    portValue: 8080,
  });
  assertEquals(where({ protocol: "udp" }).protocol, 1);
});

Deno.test("a listener of Envoy's that moves is another one", () => {
  const name = (port: Partial<ServicePort>) =>
    made(ENVOY, withPort(port)).one("listener").name;
  const listen = { port: 8080 };
  assertEquals(name({}), "default/a:80");
  assertEquals(name({ protocol: "udp" }), "default/a:80/udp");
  assertEquals(name({ listen }), "default/a:80@127.0.0.1:8080");
  assertEquals(
    name({ listen: { host: "::1", port: 8080 }, protocol: "udp" }),
    "default/a:80/udp@[::1]:8080",
  );
});

Deno.test("Envoy speaks of a port what its endpoints speak", () => {
  const http2 = (appProtocol: string) =>
    made(ENVOY, withPort({ appProtocol })).one("cluster")
      .typedExtensionProtocolOptions !== undefined;
  assertEquals(
    ["http", "h2c", "grpc", "kubernetes.io/h2c", "redis"].map(http2),
    [false, true, true, true, false],
  );
  for (const appProtocol of ["http", "grpc"]) {
    const { one } = made(ENVOY, withPort({ appProtocol }));
    const [{ filters }] = one("listener").filterChains;
    const { rds, statPrefix, httpFilters } = filters[0].typedConfig;
    assertEquals(rds.routeConfigName, "default/a:80");
    assertEquals(statPrefix, "default/a:80");
    assertEquals(httpFilters.at(-1).name, "envoy.filters.http.router");
    const { name, virtualHosts } = one("route");
    assertEquals(name, "default/a:80");
    const [{ route, match }] = virtualHosts[0].routes;
    assertEquals(match, { prefix: "/" });
    // Else Envoy ends every request after 15 s.
    assertEquals(route.timeout, {});
  }
});

Deno.test("a client stays with its endpoint where a service has affinity", () => {
  const affinity = { kind: "client-ip", ttlMs: 1_000 } as const;
  const RING_HASH = 2;
  for (const variant of BOTH) {
    const { one } = made(variant, withPort({}, { affinity }));
    assertEquals(one("cluster").lbPolicy, RING_HASH);
  }
  const tcp = made(ENVOY, withPort({}, { affinity })).one("listener");
  const { hashPolicy } = tcp.filterChains[0].filters[0].typedConfig;
  assertEquals(hashPolicy, [{ sourceIp: {} }]);
  const udp = made(ENVOY, withPort({ protocol: "udp" }, { affinity }))
    .one("listener");
  assertEquals(udp.listenerFilters[0].typedConfig.hashPolicies, [
    { sourceIp: true },
  ]);
  const http = withPort({ appProtocol: "http" }, { affinity });
  const routeOf = (variant: Variant) =>
    made(variant, http).one("route").virtualHosts[0].routes[0].route;
  assertEquals(routeOf(ENVOY).hashPolicy, [
    { connectionProperties: { sourceIp: true } },
  ]);
  assertEquals(routeOf(GRPC).hashPolicy, [
    { filterState: { key: "io.grpc.channel_id" } },
  ]);
});

Deno.test("gRPC gets no way of choosing that it would refuse", () => {
  const [ROUND_ROBIN, LEAST_REQUEST, RANDOM] = [undefined, 1, 3];
  const cases = [
    ["round-robin", ROUND_ROBIN],
    ["least-connections", LEAST_REQUEST],
    ["random", RANDOM],
    ["weighted", ROUND_ROBIN],
  ] as const;
  for (const [balance, envoy] of cases) {
    const service = serviceOf("a", 80, { policy: { balance } });
    assertEquals(made(ENVOY, service).one("cluster").lbPolicy, envoy);
    assertEquals(made(GRPC, service).one("cluster").lbPolicy, ROUND_ROBIN);
  }
});

Deno.test("Envoy checks the health that a service wants checked, where it can", () => {
  const times = { intervalMs: 5_000, timeoutMs: 500 };
  const health = { kind: "http", path: "/ok", ...times } as const;
  const service = withPort({}, { policy: { health } });
  const { healthChecks, ignoreHealthOnHostRemoval } = made(ENVOY, service)
    .one("cluster");
  assertEquals(healthChecks, [{
    timeout: { nanos: 500_000_000 },
    interval: { seconds: 5 },
    noTrafficInterval: { seconds: 5 },
    unhealthyThreshold: { value: 3 },
    healthyThreshold: { value: 2 },
    httpHealthCheck: {
      host: "a.default",
      path: "/ok",
      expectedStatuses: [{ start: 200, end: 400 }],
    },
  }]);
  const asked = (health: HealthCheck) =>
    made(ENVOY, withPort({}, { policy: { health } })).one("cluster")
      .healthChecks![0]!;
  const said = asked({
    ...health,
    rise: 1,
    fall: 5,
    host: "web.example",
    statuses: [{ first: 204, last: 204 }],
  });
  assertEquals(said.unhealthyThreshold, { value: 5 });
  assertEquals(said.healthyThreshold, { value: 1 });
  assertEquals(said.httpHealthCheck, {
    host: "web.example",
    path: "/ok",
    expectedStatuses: [{ start: 204, end: 205 }],
  });
  const { grpcHealthCheck } = asked({ kind: "grpc", service: "a.B", ...times });
  assertEquals(grpcHealthCheck, { serviceName: "a.B", authority: "a.default" });
  assertEquals(asked({ ...health, tls: {} }).tcpHealthCheck, {});
  assert(ignoreHealthOnHostRemoval);
  const never: readonly (readonly [Variant, Partial<ServicePort>])[] = [
    [GRPC, {}],
    [ENVOY, { protocol: "udp" }],
    [{ form: "envoy", connectProxy: CONNECT }, {}],
  ];
  for (const [variant, port] of never) {
    const cluster = made(variant, withPort(port, { policy: { health } }))
      .one("cluster");
    assertEquals(cluster.healthChecks, undefined);
  }
  const elsewhere = { ...health, port: 8081 };
  const cluster = made(ENVOY, withPort({}, { policy: { health: elsewhere } }))
    .one("cluster");
  assertEquals(cluster.healthChecks, undefined);
});
