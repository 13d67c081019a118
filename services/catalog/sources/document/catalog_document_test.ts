import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import {
  CatalogDocumentError,
  readCatalogDocument,
} from "./catalog_document.ts";

const guide = new URL("../../../../docs/services.md", import.meta.url);
const meaning = new URL(
  "../../../../tests/golden/catalog/docs_services.json",
  import.meta.url,
);

function refused(text: string, ...parts: readonly string[]) {
  const { message } = assertThrows(
    () => readCatalogDocument(text),
    CatalogDocumentError,
  );
  for (const part of parts) assertStringIncludes(message, part);
}

Deno.test("the example of docs/services.md is read, and means what is said there", () => {
  const [, text = ""] = /```yaml\n(services:[^`]+)```/.exec(
    Deno.readTextFileSync(guide),
  ) ?? [];
  // Services that say nothing of endpoints leave them to another source.
  assertEquals(
    readCatalogDocument(text),
    JSON.parse(Deno.readTextFileSync(meaning)),
  );
});

Deno.test("JSON says the same as YAML", () => {
  const port = { name: "", port: 80, protocol: "tcp" };
  const yaml = "services:\n- {name: a, ports: [{port: 80}]}\n";
  const json = JSON.stringify({ services: [{ name: "a", ports: [port] }] });
  assertEquals(
    readCatalogDocument(json),
    readCatalogDocument(yaml),
  );
});

Deno.test("what is wrong is said with its line", () => {
  const text = `services:
- name: a
  ports:
  - {port: 80, colour: red}
- name: b
  ports:
  - port: 70000
- ports: [{port: 1}]
- name: d
  ports: [{port: 1}]
  endpoints:
  - address: 10.0.0.1:80
`;
  refused(
    text,
    "line 4: services[0].ports[0].colour: there is no such field",
    "line 7: services[1].ports[0].port: saw 70000, wanted 1 to 65535",
    "line 8: services[2].name: wanted a name",
    'line 12: services[3].endpoints[0].address: "10.0.0.1:80"',
  );
  refused(
    JSON.stringify({ services: [{ name: 7, ports: [] }] }, null, 1),
    "line 4: services[0].name: saw a number, wanted a text",
  );
});

Deno.test("what is wrong with a route is said with its line", () => {
  const text = `services:
- name: a
  ports:
  - port: 80
    appProtocol: http
    routes:
    - prefix: /a
      to: [{service: b}]
    - prefix: /b
      goto: c
    - headers: {x: 1}
      to: [{service: b, port: 80}]
    - {prefix: /c, to: []}
- name: b
  ports:
  - port: 80
    appProtocol: grpc
    routes: [{prefix: b, to: [{service: a, port: 80}]}]
- name: c
  ports: [{port: 80, appProtocol: http, routes: [{host: A.example}]}]
- name: d
  ports:
  - {port: 80, appProtocol: redis, routes: [{to: [{service: a, port: 80}]}]}
`;
  const [a = "", b = "", c = "", d = ""] = text.split(/^(?=- name)/m).slice(1);
  const cases = [
    [a, "line 8: services[0].ports[0].routes[0].to[0].port: wanted a number"],
    [
      a.replace("{service: b}", "{service: b, port: 80}"),
      "line 10: services[0].ports[0].routes[1].goto: there is no such field",
    ],
    [
      a.replace("{service: b}", "{service: b, port: 80}").replace("goto", "to"),
      "line 10: services[0].ports[0].routes[1].to: saw a string, wanted a list",
    ],
    [
      a.replace("{service: b}", "{service: b, port: 80}")
        .replace("goto: c", "to: [{service: c, port: 1}]"),
      "line 11: services[0].ports[0].routes[2].headers.x: saw a number, wanted",
    ],
    [b, 'port "": route 1: "b" is no prefix of paths'],
    [c, "routes[0].to: wanted a list of {service: NAME, port: PORT}"],
    [d, "routes are for TCP ports with appProtocol http"],
  ] as const;
  for (const [service, problem] of cases) {
    refused(`services:\n${service}`, problem);
  }
});

Deno.test("hosts and headers of routes are in lower case, whoever wrote them", () => {
  const { services } = readCatalogDocument(
    "services:\n- name: a\n  ports:\n  - {port: 80, appProtocol: http, routes: " +
      "[{host: WWW.Example, headers: {X-A: B}, to: [{service: a, port: 80}]}]}",
  );
  const [route] = services[0]?.ports[0]?.routes ?? [];
  assertEquals(route, {
    host: "www.example",
    prefix: "/",
    headers: [{ name: "x-a", value: "B" }],
    to: [{ service: "default/a", port: 80, weight: 1 }],
  });
});

Deno.test("many problems are a few and a count", () => {
  const text = `services: [${"{}, ".repeat(20)}]`;
  refused(text, "services[4].name", "and 15 more problems");
});

Deno.test("a text that is neither YAML nor JSON is refused with its line", () => {
  refused(
    "services:\n- {name: a\n- b",
    "neither YAML nor JSON",
    "line 3",
  );
  refused('{"services": [', "neither YAML nor JSON");
});

Deno.test("a document that is empty or half written is not an empty catalog", () => {
  for (const text of ["", "services:", "{}", "[]", "x: 1", "null"]) {
    assertThrows(() => readCatalogDocument(text), CatalogDocumentError);
  }
  const { services } = readCatalogDocument("services: []");
  assertEquals(services, []);
});

Deno.test("one service twice, one port twice, is refused", () => {
  const a = "{name: a, ports: [{port: 80}]}";
  refused(
    `services:\n- ${a}\n- ${a}`,
    "line 3",
    "default/a is there twice",
  );
  refused(
    "services:\n- {name: a, ports: [{name: x, port: 80}, {name: y, port: 80}]}",
    "two of its ports are 80/tcp",
  );
  readCatalogDocument(
    "services:\n- {name: a, ports: [{name: x, port: 53}, {name: y, port: 53, protocol: udp}]}",
  );
});

Deno.test("UDP ports alone cannot say whether they live, another port can", () => {
  const ports = "ports:\n  - {name: dns, port: 53, protocol: udp}";
  const of = (health: string, more = "") =>
    `services:\n- name: a\n  ${ports}\n  ${more}\n  policy:\n    health: ${health}\n`;
  refused(
    of("{http: {path: /ready}}"),
    "line 7: services[0].policy.health: nothing says whether a UDP port lives",
  );
  const healthOf = (text: string) =>
    readCatalogDocument(text).services[0]!.policy.health;
  const times = { intervalMs: 10_000, timeoutMs: 2_000 };
  assertEquals(healthOf(of("{tcp: {port: 53}}")), {
    ...{ kind: "tcp", port: 53 },
    ...times,
  });
  assertEquals(healthOf(of("{http: {path: /ready, port: 8181}}")), {
    ...{ kind: "http", path: "/ready", port: 8_181 },
    ...times,
  });
  // The others are asked, this one is believed.
  const both = of("{tcp: {}}", "- {name: web, port: 80}");
  assertEquals(healthOf(both), { kind: "tcp", ...times });
});

Deno.test("each field refuses what it cannot mean", () => {
  const cases = [
    ["affinity: {clientIP: {ttl: 5}}", "wanted a time"],
    ["policy: {balance: best}", "wanted round-robin, random"],
    ["policy: {zoneAware: 1}", "wanted true or false"],
    ["policy: {health: {interval: 1s}}", "wanted one of tcp"],
    ["policy: {health: {tcp: {}, http: {}}}", "wanted one of tcp"],
    ["policy: {health: {http: {status: [600]}}}", "wanted a status such as"],
    ["policy: {health: {http: {status: []}}}", "wanted one at least"],
    ["policy: {health: {http: {status: [300-200]}}}", "a range such as"],
    ["policy: {health: {http: {host: 'a b'}}}", "is no host to ask"],
    ['policy: {health: {http: {host: "a\\r\\nb"}}}', "is no host to ask"],
    ["policy: {health: {grpc: {tls: {serverName: 'a b'}}}}", "no name of"],
    ["policy: {health: {tcp: {}, rise: 0}}", "wanted 1 to 100"],
    ["policy: {ejection: {failures: -1}}", "wanted 0 to 1000"],
    ["policy: {onEndpointDown: close}", "wanted stay, drain, reset"],
    ["policy: {idleTimeout: 5}", "wanted a time such as"],
    ["policy: {health: {http: {path: x}}}", "no path"],
    ["policy: {health: {tcp: {port: 0}}}", "wanted 1 to 65535"],
    ["policy: {health: {http: {port: web}}}", "wanted 1 to 65535"],
    ["policy: {health: {tcp: {path: /}}}", "no such field"],
    ["endpoints: [{address: 10.0.0.1, weight: 0}]", "wanted 1 to 1000"],
    [
      "endpoints: [{address: 10.0.0.1, ports: {https: 1}}]",
      "wanted port: PORT",
    ],
    ["endpoints: [{address: 10.0.0.1, port: 1, ports: {}}]", "ports as well"],
    ["endpoints: [{address: 300.0.0.1}]", "neither an IP address"],
    ["endpoints: [{address: 10.0.0.1, via: {}}]", "wanted one of uid"],
    ["endpoints: [{address: 10.0.0.1, via: {host: a, uid: b}}]", "wanted one"],
    ["endpoints: [{address: 10.0.0.1, via: {cidr: x}}]", "names no agent"],
    ["endpoints: [{address: 10.0.0.1, via: tunnel}]", 'saw "tunnel"'],
    ["endpoints: {}", "wanted a list"],
    ["namespace: a/b", "no namespace"],
  ] as const;
  for (const [line, problem] of cases) {
    refused(
      `services:\n- name: a\n  ports: [{port: 80}]\n  ${line}\n`,
      problem,
    );
  }
  refused(
    "services:\n- {name: a, ports: [{port: 80, listen: localhost:80}]}",
    "wanted a port, or ADDRESS:PORT",
  );
});

Deno.test("who names no endpoints says nothing of them, and [] says none", () => {
  const read = (endpoints: string) => {
    const text = `services:\n- name: a\n  ports: [{port: 80}]\n${endpoints}`;
    return readCatalogDocument(text).endpoints;
  };
  assertEquals(read(""), []);
  assertEquals(read("  endpoints:\n"), []);
  const none = [{ service: "default/a", endpoints: [] }];
  assertEquals(read("  endpoints: []\n"), none);
});

Deno.test("one list of endpoints in many places is read no further than the limit", () => {
  const endpoints = "{address: 10.0.0.1}, ".repeat(10_000);
  const others = Array.from(
    { length: 10_000 },
    (_, i) => `- {name: s${i}, ports: [{port: 80}], endpoints: *all}`,
  );
  // By their own limit, and not after eight million values.
  refused(
    `services:\n- {name: s, ports: [{port: 80}], endpoints: &all [${endpoints}]}\n` +
      others.join("\n"),
    "more than 200000 endpoints",
  );
});
