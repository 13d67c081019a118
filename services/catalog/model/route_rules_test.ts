import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import {
  changeOf,
  serviceOf,
} from "../../../tests/support/watch/scripted_source.ts";
import {
  appProtocolOf,
  HEADERS_PER_ROUTE_MAX,
  type Route,
  ROUTES_PER_PORT_MAX,
  type ServicePort,
  TARGETS_PER_ROUTE_MAX,
} from "./model.ts";
import { SourceEntries } from "../changes.ts";
import { checkRoutes } from "./route_rules.ts";
import { checkService } from "./validate.ts";

const TARGET = { service: "default/b", port: 80, weight: 1 };
const ROUTE: Route = { prefix: "/", to: [TARGET] };

function portWith(...routes: readonly Route[]): ServicePort {
  return { name: "", port: 80, protocol: "tcp", appProtocol: "http", routes };
}

Deno.test("routes that can be used are let through", () => {
  const headers = [{ name: "x-a", value: "" }, { name: "x-b", value: "a b" }];
  const cases: readonly Route[] = [
    ROUTE,
    { ...ROUTE, host: "www.example.com" },
    { ...ROUTE, host: "*.example.com" },
    { ...ROUTE, host: "10.0.0.1" },
    { ...ROUTE, prefix: "/pkg.Service/Method" },
    { ...ROUTE, prefix: "/a%20b;c=d@e" },
    { ...ROUTE, headers },
    { ...ROUTE, to: [TARGET, { ...TARGET, port: 81, weight: 1_000_000 }] },
  ];
  for (const route of cases) {
    assertEquals(checkRoutes(portWith(route)), undefined);
  }
  assertEquals(checkRoutes(portWith()), undefined);
});

Deno.test("what is wrong with a route is said, and in which", () => {
  const cases: readonly [Partial<Route>, string][] = [
    [{ host: "" }, '"" is no host'],
    [{ host: "WWW.example" }, "a name in lower case is wanted"],
    [{ host: "*" }, "is no host"],
    [{ host: "a.*" }, "is no host"],
    [{ host: "example.com:80" }, "is no host"],
    [{ host: `${"a.".repeat(126)}aa` }, "is no host"],
    [{ prefix: "" }, "is no prefix of paths"],
    [{ prefix: "v1" }, "is no prefix of paths"],
    [{ prefix: "/a?b" }, "is no prefix of paths"],
    [{ prefix: "/a#b" }, "is no prefix of paths"],
    [{ prefix: "/a b" }, "is no prefix of paths"],
    [{ prefix: "/\r\n" }, '"/\\r\\n" is no prefix of paths'],
    [{ prefix: `/${"a".repeat(1_024)}` }, "1024 at most"],
    [{ headers: [{ name: "X-A", value: "" }] }, "name of a header in lower"],
    [{ headers: [{ name: ":path", value: "" }] }, "name of a header in lower"],
    [{ headers: [{ name: "a", value: "x\ny" }] }, "a value that none can"],
    [{ headers: [{ name: "a", value: " x" }] }, "a value that none can"],
    [
      { headers: [{ name: "a", value: "1" }, { name: "a", value: "2" }] },
      "a is there twice",
    ],
    [
      {
        headers: Array.from(
          { length: HEADERS_PER_ROUTE_MAX + 1 },
          (_, i) => ({ name: `a${i}`, value: "" }),
        ),
      },
      "17 headers, 16 are allowed",
    ],
    [{ to: [] }, "goes to 0 places"],
    [{ to: [TARGET, TARGET] }, "goes to default/b:80 twice"],
    [{ to: [{ ...TARGET, service: "b" }] }, "is no NAMESPACE/NAME"],
    [{ to: [{ ...TARGET, port: 0 }] }, "goes to port 0"],
    [{ to: [{ ...TARGET, weight: 0 }] }, "the weight 0"],
    [{ to: [{ ...TARGET, weight: 1.5 }] }, "the weight 1.5"],
    [
      {
        to: Array.from(
          { length: TARGETS_PER_ROUTE_MAX + 1 },
          (_, i) => ({ ...TARGET, port: i + 1 }),
        ),
      },
      "goes to 17 places",
    ],
  ];
  for (const [fields, problem] of cases) {
    const text = checkRoutes(portWith(ROUTE, { ...ROUTE, ...fields })) ?? "";
    assert(text.startsWith("route 2: "), text);
    assertStringIncludes(text, problem);
  }
  const many = Array<Route>(ROUTES_PER_PORT_MAX + 1).fill(ROUTE);
  assertStringIncludes(checkRoutes(portWith(...many)) ?? "", "128 are allowed");
});

Deno.test("only ports with requests have routes", () => {
  const routes = [ROUTE];
  const ports: readonly ServicePort[] = [
    { name: "", port: 80, protocol: "tcp", routes },
    { name: "", port: 80, protocol: "tcp", appProtocol: "redis", routes },
    { name: "", port: 80, protocol: "udp", appProtocol: "http", routes },
  ];
  for (const port of ports) {
    assertEquals(
      checkService(serviceOf("a", 80, { ports: [port] })),
      'default/a: port "": routes are for TCP ports with appProtocol http, ' +
        "h2c or grpc",
    );
  }
});

Deno.test("a service whose routes differ is another, and the same otherwise", () => {
  const entries = new SourceEntries();
  const service = (prefix: string) =>
    serviceOf("a", 80, { ports: [portWith({ ...ROUTE, prefix })] });
  entries.set({ services: [service("/a")] });
  const before = entries.services.get("default/a");
  assertEquals(
    entries.change(changeOf({ services: [service("/a")] })).count,
    0,
  );
  assert(entries.services.get("default/a") === before);
  assertEquals(
    entries.change(changeOf({ services: [service("/b")] })).count,
    1,
  );
  assert(entries.services.get("default/a") !== before);
});

Deno.test("what an application protocol means depends on the name alone", () => {
  const cases = [
    ["http", "http"],
    ["kubernetes.io/ws", "http"],
    ["h2c", "h2c"],
    ["kubernetes.io/h2c", "h2c"],
    ["http2", "h2c"],
    ["grpc", "grpc"],
    ["https", undefined],
    ["kubernetes.io/wss", undefined],
    ["redis", undefined],
    ["HTTP", undefined],
  ] as const;
  for (const [appProtocol, meaning] of cases) {
    assertEquals(appProtocolOf({ protocol: "tcp", appProtocol }), meaning);
    assertEquals(appProtocolOf({ protocol: "udp", appProtocol }), undefined);
  }
  assertEquals(appProtocolOf({ protocol: "tcp" }), undefined);
});
