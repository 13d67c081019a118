import { assertEquals, assertThrows } from "@std/assert";
import {
  clusterMetadata,
  endpointMetadata,
  readClusterMetadata,
  readEndpointMetadata,
} from "./discovery_metadata.ts";
import {
  DIRECT,
  type Endpoint,
  type HealthCheck,
  NO_AFFINITY,
  NO_POLICY,
  type Service,
} from "./model/model.ts";

const PLAIN: Service = {
  namespace: "default",
  name: "web",
  ports: [{ name: "", port: 80, protocol: "tcp" }],
  affinity: NO_AFFINITY,
  policy: NO_POLICY,
};

const FULL: Service = {
  namespace: "shop",
  name: "db.main",
  ports: [
    {
      name: "sql",
      port: 5432,
      protocol: "tcp",
      appProtocol: "postgres",
      listen: { host: "127.0.0.1", port: 15432 },
    },
    { name: "probe", port: 53, protocol: "udp", listen: { port: 5300 } },
    {
      name: "api",
      port: 80,
      protocol: "tcp",
      appProtocol: "http",
      routes: [
        {
          host: "*.example.com",
          prefix: "/v2",
          headers: [{ name: "x-canary", value: "1" }],
          to: [{ service: "shop/next", port: 81, weight: 9 }],
        },
        { prefix: "/", to: [{ service: "shop/db.main", port: 80, weight: 1 }] },
      ],
    },
  ],
  affinity: { kind: "client-ip", ttlMs: 60_000 },
  policy: {
    balance: "least-connections",
    zoneAware: true,
    dialTimeoutMs: 300,
    udpIdleMs: 5_000,
    drainMs: 0,
    agentOnFailure: true,
    onEndpointRemoved: "drain",
    onEndpointDown: "reset",
    endpointDrainMs: 7_000,
    idleTimeoutMs: 3_600_000,
    halfClosedTimeoutMs: 0,
    userTimeoutMs: 20_000,
    ejection: { failures: 5 },
    health: { kind: "http", path: "/ok", intervalMs: 1_000, timeoutMs: 200 },
  },
};

/** As it is after a `google.protobuf.Struct`. */
function travelled(form: unknown): unknown {
  return form === undefined ? undefined : JSON.parse(JSON.stringify(form));
}

Deno.test("a service comes back as it was, with everything and with nothing", () => {
  for (const service of [PLAIN, FULL]) {
    const port = service.ports[0]!.name;
    const form = travelled(clusterMetadata(service, port));
    assertEquals(readClusterMetadata(form), { service, port });
  }
  const tcp = { kind: "tcp", intervalMs: 1, timeoutMs: 2 } as const;
  const http = { ...tcp, kind: "http", path: "/ok", port: 8080 } as const;
  const asked: HealthCheck = {
    ...http,
    rise: 1,
    fall: 5,
    host: "web.example",
    statuses: [{ first: 200, last: 204 }],
    tls: { verify: true, serverName: "web" },
  };
  const grpc = { ...tcp, kind: "grpc", service: "a.B", tls: {} } as const;
  for (const health of [tcp, { ...tcp, port: 53 }, http, asked, grpc]) {
    const service = { ...PLAIN, policy: { health } };
    const form = travelled(clusterMetadata(service, ""));
    assertEquals(readClusterMetadata(form).service, service);
  }
});

Deno.test("an endpoint comes back as it was, by whatever way", () => {
  const plain: Endpoint = {
    address: "10.0.0.1",
    ports: [{ name: "sql", port: 5433 }],
    state: "ready",
    weight: 1,
    via: DIRECT,
  };
  const all: readonly Endpoint[] = [
    plain,
    { ...plain, state: "terminating", weight: 7 },
    { ...plain, node: "n1", zone: "a", forZones: ["a", "b"] },
    { ...plain, via: { kind: "agent" } },
    { ...plain, via: { kind: "agent", agent: { key: "uid", value: "42" } } },
    { ...plain, ports: [...plain.ports, { name: "probe", port: 9 }] },
    { ...plain, ports: [{ name: "", port: 5433 }] },
  ];
  for (const endpoint of all) {
    const { address, weight } = endpoint;
    const form = travelled(endpointMetadata(endpoint));
    const seen = { address, port: 5433, weight };
    assertEquals(readEndpointMetadata(seen, form), endpoint);
  }
  const nameless = { ...plain, ports: [{ name: "", port: 5433 }] };
  assertEquals(endpointMetadata(nameless), undefined);
});

Deno.test("what a newer server writes besides is ignored", () => {
  const form = { service: { ...FULL, colour: "red" }, port: "sql", more: 1 };
  assertEquals(readClusterMetadata(form).service, FULL);
});

Deno.test("what is no form says what is wrong with it", () => {
  const endpoint = { address: "10.0.0.1", port: 1, weight: 1 };
  const wrongs: readonly (readonly [() => unknown, string])[] = [
    [
      () => readClusterMetadata(undefined),
      "it has no metadata of a tunnel server",
    ],
    [() => readClusterMetadata([]), "the document: saw a list, wanted a map"],
    [() => readClusterMetadata({ port: "" }), "service: it is missing"],
    [
      () => readClusterMetadata({ service: { ...PLAIN, ports: 1 }, port: "" }),
      "service.ports: saw a number, wanted a list",
    ],
    [
      () =>
        readClusterMetadata({ service: { ...PLAIN, name: null }, port: "" }),
      "service.name: it is missing",
    ],
    [
      () => readEndpointMetadata(endpoint, { state: "odd" }),
      'state: saw "odd", wanted ready, serving, terminating, unready',
    ],
    [
      () => readEndpointMetadata(endpoint, { via: { key: "ip", value: "1" } }),
      'via.key: saw "ip", wanted uid, host, cidr, id',
    ],
  ];
  for (const [read, message] of wrongs) assertThrows(read, Error, message);
});

Deno.test("a health check of a kind that only a newer server knows is none", () => {
  const form = travelled(clusterMetadata(PLAIN, "")) as Record<string, unknown>;
  const policy = { health: { kind: "ping", intervalMs: 1, timeoutMs: 2 } };
  const service = { ...form["service"] as object, policy };
  assertEquals(readClusterMetadata({ ...form, service }).service.policy, {});
});
