import { assertEquals, assertStringIncludes } from "@std/assert";
import {
  endpointOf,
  serviceOf,
} from "../../../tests/support/watch/scripted_source.ts";
import type { Endpoint, Service } from "./model.ts";
import {
  canonicalAddress,
  checkEndpoints,
  checkService,
  ENDPOINTS_PER_SERVICE_MAX,
  PORTS_PER_SERVICE_MAX,
} from "./validate.ts";

Deno.test("an address has one spelling, and only addresses have one", () => {
  const cases = [
    ["10.0.0.7", "10.0.0.7"],
    ["FD00::0001", "fd00::1"],
    ["::ffff:10.0.0.7", "10.0.0.7"],
    ["Web.Example.", "web.example"],
    ["_sip._udp.example", "_sip._udp.example"],
    ["255.249.199.0", "255.249.199.0"],
    ["10.0.0.256", undefined],
    ["10.0.0.07", undefined],
    ["10.0.0", undefined],
    ["10.0.0.1.", undefined],
    ["10.0.0.1.1", undefined],
    ["127.1", undefined],
    ["2130706433", undefined],
    ["fe80::1%eth0", undefined],
    ["a b", undefined],
    ["-a", undefined],
    ["", undefined],
    ["a..b", undefined],
    [`${"a.".repeat(130)}a`, undefined],
  ] as const;
  for (const [text, expected] of cases) {
    assertEquals(canonicalAddress(text), expected, text);
  }
});

Deno.test("a service that cannot be used is told from one that can", () => {
  const port = { name: "", port: 80, protocol: "tcp" } as const;
  const cases: readonly [Partial<Service>, string][] = [
    [{ namespace: "" }, "is no namespace"],
    [{ namespace: "a.b" }, "is no namespace"],
    [{ name: "a/b" }, "is no name of a service"],
    [{ name: "a\nb" }, "is no name of a service"],
    [{ name: "a".repeat(254) }, "is no name of a service"],
    [{ ports: [{ ...port, name: "a b" }] }, "is no name of a port"],
    [{ ports: [{ ...port, port: 1.5 }] }, "1 to 65535 is wanted"],
    [{ ports: [{ ...port, listen: { port: 0 } }] }, "1 to 65535 is wanted"],
    [
      { ports: [{ ...port, listen: { host: "localhost", port: 1 } }] },
      "an IP address is wanted",
    ],
    [{ ports: [port, { ...port, port: 81 }] }, 'are named ""'],
    [{ ports: [port, { ...port, name: "b" }] }, "are 80/tcp"],
    [
      {
        ports: Array.from(
          { length: PORTS_PER_SERVICE_MAX + 1 },
          (_, i) => ({ ...port, name: `p${i}`, port: i + 1 }),
        ),
      },
      "256 are allowed",
    ],
    [{ affinity: { kind: "client-ip", ttlMs: 0 } }, "affinity is 0 ms"],
    [{ policy: { udpIdleMs: Infinity } }, "udpIdle is Infinity ms"],
    [{ policy: { drainMs: -1 } }, "drain is -1 ms"],
    [
      {
        policy: {
          health: { kind: "tcp", port: 65_536, intervalMs: 1, timeoutMs: 1 },
        },
      },
      "its health is asked at port 65536",
    ],
  ];
  for (const [fields, problem] of cases) {
    assertStringIncludes(
      checkService({ ...serviceOf("a"), ...fields }) ?? "",
      problem,
    );
  }
  const both = [port, { ...port, name: "dns", protocol: "udp" as const }];
  assertEquals(checkService(serviceOf("a", 80, { ports: both })), undefined);
});

Deno.test("endpoints that cannot be used are told from those that can", () => {
  const endpoint = endpointOf("10.0.0.1:80");
  const cases: readonly [Partial<Endpoint>, string][] = [
    [{ address: "10.0.0.1:80" }, "is no address"],
    [{ address: "FD00::1" }, "is no address"],
    [{ ports: [{ name: "", port: 0 }] }, "1 to 65535 is wanted"],
    [{ weight: 0 }, "weight 0"],
    [{ weight: 1_001 }, "weight 1001"],
    [{ zone: "z".repeat(254) }, "is longer than 253"],
    [
      { via: { kind: "agent", agent: { key: "host", value: "" } } },
      "an agent is named by",
    ],
  ];
  for (const [fields, problem] of cases) {
    const endpoints = [{ ...endpoint, ...fields }];
    assertStringIncludes(
      checkEndpoints({ service: "default/a", endpoints }) ?? "",
      problem,
    );
  }
  for (const service of ["a", "a/b/c", "/a", "a/"]) {
    assertStringIncludes(
      checkEndpoints({ service, endpoints: [] }) ?? "",
      "is no NAMESPACE/NAME",
    );
  }
  const many = Array(ENDPOINTS_PER_SERVICE_MAX + 1).fill(endpoint);
  assertStringIncludes(
    checkEndpoints({ service: "default/a", endpoints: many }) ?? "",
    "10000 are allowed",
  );
});
