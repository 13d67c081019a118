import { assertEquals } from "@std/assert";
import { Catalog } from "../../services/catalog/catalog.ts";
import type { Via } from "../../services/catalog/model/model.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import {
  endpointOf,
  ScriptedSource,
  serviceOf,
} from "../../tests/support/watch/scripted_source.ts";
import { RECENTLY_REMOVED_MS } from "../../services/catalog/recently_removed.ts";
import { CatalogReach } from "./catalog_reach.ts";

function setUp() {
  const source = new ScriptedSource("script");
  const catalog = new Catalog({
    sources: [source],
    log: new RecordedLog(),
    timers: new FakeTimers(),
    random: () => 0,
  });
  const hidden = new Set<string>();
  const clock = new FakeTimers();
  const reach = new CatalogReach({
    catalog,
    clock,
    visibleTo: (node) => ({
      id: node,
      sees: (service) => !hidden.has(`${node} ${service}`),
    }),
  });
  catalog.start();
  const has = (agent: string | undefined, address: string, protocol = "tcp") =>
    reach.serviceOf("n", agent, { protocol, address });
  return { source, hidden, has, clock };
}

const behind = (key: "id" | "host" | "uid" | "cidr", value: string): Via => ({
  kind: "agent",
  agent: { key, value },
});

Deno.test("a target is one by its address, its port and its agent", () => {
  const { source, has } = setUp();
  source.sink.add({
    services: [serviceOf("web")],
    endpoints: [{
      service: "default/web",
      endpoints: [
        endpointOf("10.0.0.7:80", { via: behind("id", "Edge-1") }),
        endpointOf("10.0.0.8:80", { via: behind("host", "node8") }),
        endpointOf("10.0.0.9:80", { via: { kind: "agent" } }),
        endpointOf("web.internal:80", { via: behind("uid", "u1") }),
        endpointOf("10.0.0.10:80", {
          state: "unready",
          via: behind("id", "b"),
        }),
        endpointOf("10.0.0.11:80"),
      ],
    }],
  });
  // deno-fmt-ignore: the columns are the point.
  const cases: readonly (readonly [agent: string | undefined, address: string, is: boolean])[] = [
    ["id=Edge-1",   "10.0.0.7:80",           true ],
    ["id=Edge-1",   "[::ffff:10.0.0.7]:80",  true ],
    ["id=edge-1",   "10.0.0.7:80",           false],
    ["Edge-1",      "10.0.0.7:80",           false],
    [undefined,     "10.0.0.7:80",           false],
    ["id=Edge-1",   "10.0.0.7:81",           false],
    ["id=Edge-1",   "10.0.0.8:80",           false],
    ["node8",       "10.0.0.8:80",           true ],
    ["host=NODE8",  "10.0.0.8:80",           true ],
    [undefined,     "10.0.0.9:80",           true ],
    ["node8",       "10.0.0.9:80",           false],
    ["uid=u1",      "WEB.internal.:80",      true ],
    ["id=b",        "10.0.0.10:80",          true ],
    [undefined,     "10.0.0.11:80",          false],
    ["id=Edge-1",   "10.0.0.7",              false],
    ["id=Edge-1",   "0x0a.7:80",             false],
  ];
  for (const [agent, address, is] of cases) {
    const service = is ? "default/web" : undefined;
    assertEquals(has(agent, address), service, `${agent} ${address}`);
  }
  assertEquals(has("id=Edge-1", "10.0.0.7:80", "udp"), undefined);
  assertEquals(has("id=Edge-1", "10.0.0.7:80", "unix"), undefined);
});

Deno.test("what the catalog does not have any more is no target in the end", () => {
  const { source, has, clock } = setUp();
  const endpoint = endpointOf("10.0.0.7:80", { via: { kind: "agent" } });
  const at = (service: string) => ({ service, endpoints: [endpoint] });
  source.sink.add({
    services: [serviceOf("a"), serviceOf("b")],
    endpoints: [at("default/a"), at("default/b")],
  });
  assertEquals(has(undefined, "10.0.0.7:80"), "default/a");
  source.sink.remove({ services: ["default/a"] });
  assertEquals(has(undefined, "10.0.0.7:80"), "default/b");
  source.sink.add({ endpoints: [{ service: "default/b", endpoints: [] }] });
  // Its clients may not know it yet.
  assertEquals(has(undefined, "10.0.0.7:80"), "default/b");
  clock.advance(2 * RECENTLY_REMOVED_MS);
  assertEquals(has(undefined, "10.0.0.7:80"), undefined);
  source.sink.add({ services: [serviceOf("a")] });
  assertEquals(has(undefined, "10.0.0.7:80"), "default/a");
});

Deno.test("a direct endpoint is one where its service may go round", () => {
  const { source, has } = setUp();
  const policy = { agentOnFailure: true };
  const endpoints = [{
    service: "default/web",
    endpoints: [endpointOf("10.0.0.7:80")],
  }];
  source.sink.add({ services: [serviceOf("web")], endpoints });
  assertEquals(has(undefined, "10.0.0.7:80"), undefined);
  source.sink.add({ services: [serviceOf("web", 80, { policy })] });
  assertEquals(has(undefined, "10.0.0.7:80"), "default/web");
});

Deno.test("a service that a node does not see gives it nothing", () => {
  const { source, hidden, has } = setUp();
  const endpoint = endpointOf("10.0.0.7:80", { via: { kind: "agent" } });
  const at = (service: string) => ({ service, endpoints: [endpoint] });
  source.sink.add({
    services: [serviceOf("a"), serviceOf("b")],
    endpoints: [at("default/a"), at("default/b")],
  });
  hidden.add("n default/a");
  assertEquals(has(undefined, "10.0.0.7:80"), "default/b");
  hidden.add("n default/b");
  assertEquals(has(undefined, "10.0.0.7:80"), undefined);
});
