import { assertEquals, assertThrows } from "@std/assert";
import { GrpcError } from "../../proto/grpc/status.ts";
import { TunnelService } from "../../proto/xds/xds_messages.ts";
import {
  DIRECT,
  type Endpoint,
  type HealthCheck,
  NO_AFFINITY,
  NO_POLICY,
  type Service,
} from "./model/model.ts";
import {
  messageOf,
  ServiceMessageError,
  type WholeService,
  wholeServiceOf,
} from "./service_message.ts";

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
    nodeAware: false,
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
  announced: true,
};

const MESSAGE = messageOf({ service: PLAIN, endpoints: [] });

const TCP = { kind: "tcp", intervalMs: 1, timeoutMs: 2 } as const;
const HTTP = { ...TCP, kind: "http", path: "/ok", port: 8080 } as const;
const CHECKS: readonly HealthCheck[] = [
  TCP,
  { ...TCP, port: 53 },
  HTTP,
  {
    ...HTTP,
    rise: 1,
    fall: 5,
    host: "web.example",
    statuses: [{ first: 200, last: 204 }],
    tls: { verify: true, serverName: "web" },
  },
  { ...TCP, kind: "grpc", service: "a.B", tls: {} },
];

const ENDPOINT: Endpoint = {
  address: "10.0.0.1",
  ports: [{ name: "sql", port: 5433 }],
  state: "ready",
  weight: 1,
  via: DIRECT,
};
const ENDPOINTS: readonly Endpoint[] = [
  ENDPOINT,
  { ...ENDPOINT, state: "terminating", weight: 7 },
  { ...ENDPOINT, node: "n1", zone: "a", forZones: ["a", "b"] },
  { ...ENDPOINT, address: "db.internal", via: { kind: "agent" } },
  { ...ENDPOINT, via: { kind: "agent", agent: { key: "uid", value: "42" } } },
  { ...ENDPOINT, ports: [...ENDPOINT.ports, { name: "probe", port: 9 }] },
  { ...ENDPOINT, ports: [{ name: "", port: 5433 }] },
];

/** As it is behind the wire. */
function travelled(message: TunnelService): WholeService {
  return wholeServiceOf(TunnelService.decode(TunnelService.encode(message)));
}

Deno.test("a service comes back as it was, with everything and with nothing", () => {
  const services = [
    PLAIN,
    { ...PLAIN, ports: [] },
    FULL,
    ...CHECKS.map((health) => ({ ...PLAIN, policy: { health } })),
  ];
  for (const service of services) {
    for (const endpoints of [[], ENDPOINTS]) {
      const whole = { service, endpoints };
      assertEquals(travelled(messageOf(whole)), whole);
    }
  }
});

Deno.test("a health check of a kind that only a newer server knows is none", () => {
  const health = { kind: "ping", intervalMs: 1, timeoutMs: 2 };
  const { service } = travelled({ ...MESSAGE, policy: { health } });
  assertEquals(service.policy, {});
});

Deno.test("what no catalog may hold says what is wrong with it", () => {
  const port = PLAIN.ports[0]!;
  const wrongs: readonly (readonly [TunnelService, string])[] = [
    [{}, '"" is no namespace'],
    [
      { ...MESSAGE, ports: [{ ...port, port: 70_000 }] },
      'default/web: port "" is 70000, 1 to 65535 is wanted',
    ],
    [
      { ...MESSAGE, ports: [{ ...port, protocol: "sctp" }] },
      'protocol: saw "sctp", wanted tcp, udp',
    ],
    [
      { ...MESSAGE, policy: { balance: "toString" } },
      'balance: saw "toString", wanted round-robin, random, ',
    ],
    [
      { ...MESSAGE, affinity: { kind: "client-ip" } },
      "default/web: its affinity is 0 ms",
    ],
    [
      { ...MESSAGE, endpoints: [{ ...ENDPOINT, address: "a b" }] },
      'default/web: "a b" is no address',
    ],
    [
      { ...MESSAGE, endpoints: [{ ...ENDPOINT, state: "odd" }] },
      'state: saw "odd", wanted ready, serving, terminating, unready',
    ],
    [
      {
        ...MESSAGE,
        endpoints: [{
          ...ENDPOINT,
          via: { kind: "agent", agent: { key: "ip", value: "1" } },
        }],
      },
      'via.agent.key: saw "ip", wanted uid, host, cidr, id',
    ],
  ];
  for (const [message, sentence] of wrongs) {
    assertThrows(() => travelled(message), ServiceMessageError, sentence);
  }
  assertThrows(() => TunnelService.decode(Uint8Array.of(0x0a, 9)), GrpcError);
});
