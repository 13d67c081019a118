import type { Endpoint } from "../../catalog/model/model.ts";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { MetricRegistry } from "../../../platform/metrics/metrics.ts";
import {
  ask,
  deadPort,
  endpoints,
  ProxyRig,
  service,
} from "../../../tests/support/rigs/proxy_rig.ts";
import { EJECTION_FAILURES } from "../balancer/backend.ts";
import {
  ENDPOINT_SERIES_MAX,
  OTHERS,
  PORT_SERIES_MAX,
  registerProxyMetrics,
} from "./proxy_metrics.ts";
import { type ProxyStatus, proxyStatus } from "./proxy_status.ts";

function statusOf({ proxy }: ProxyRig, service?: string): ProxyStatus {
  const status = proxyStatus(proxy, undefined, service);
  return { ...status, services: [...status.services] };
}

Deno.test("the status says where a service is, what it carried and why not", async () => {
  await using rig = new ProxyRig();
  const [dead, live] = [deadPort(), rig.echo()];
  rig.sink.set({
    services: [
      service("web", {
        ports: [
          { name: "http", port: 80, protocol: "tcp" },
          { name: "alt", port: 81, protocol: "tcp" },
        ],
        affinity: { kind: "client-ip", ttlMs: 1_000 },
      }),
    ],
    endpoints: [{
      ...endpoints("web", [{ http: dead }, { http: live }]),
    }],
  });
  const { balancer } = rig.proxy.served.get("default/web:http")!.port;
  const [bad] = balancer.backends;
  for (let i = 0; i < EJECTION_FAILURES; i++) balancer.failed(bad!, "no route");
  const conn = await rig.connect("default/web:http");
  assertEquals(await ask(conn, "hello"), "hello");
  const status = JSON.parse(JSON.stringify(statusOf(rig)));
  assertEquals(status.version, 1);
  assertEquals(status.isSynced, true);
  assertEquals(status.sources[0].name, "script");
  const [http, alt] = status.services;
  assertEquals([http.port, alt.port], ["http", "alt"], "as the source has it");
  assertEquals(
    http.listening,
    `127.0.0.1:${rig.portOf("default/web:http")}`,
  );
  assertEquals([http.open, http.accepted, http.refused], [1, 1, 0]);
  assertEquals([http.bytesFromClients, http.bytesToClients], [5, 5]);
  assertEquals([http.affinity, http.affinityClients], ["client-ip", 1]);
  const [ejected, used] = http.endpoints;
  assertEquals(ejected.use, "ejected");
  assertEquals(ejected.why, "3 dials in a row failed; 10 s more: no route");
  assertEquals(used.use, "in use");
  assertEquals([used.open, used.total, used.failures], [1, 1, 0]);
  assertEquals([used.bytesSent, used.bytesReceived], [5, 5]);
  assertEquals(alt.endpoints, []);
  assertEquals(statusOf(rig, "default/other").services, []);
  conn.close();
});

Deno.test("endpoints that the catalog holds back say why", async () => {
  await using rig = new ProxyRig();
  const at = (port: number, about: Parameters<typeof endpoints>[2]) =>
    endpoints("web", [port], about).endpoints;
  rig.sink.set({
    services: [service("web")],
    endpoints: [{
      service: "default/web",
      endpoints: [
        ...at(1, {}),
        ...at(2, { state: "serving" }),
        ...at(3, { state: "terminating" }),
        ...at(4, { state: "unready" }),
      ],
    }],
  });
  const [port] = statusOf(rig).services;
  assertEquals(
    port!.endpoints.map(({ use }) => use),
    ["in use", "spared", "terminating", "unready"],
  );
  assertMatch(port!.endpoints[1]!.why!, /others are ready/);
});

Deno.test("endpoints say by which way they are reached", async () => {
  await using rig = new ProxyRig();
  const agent = { key: "uid", value: "7" } as const;
  const at = (port: number, via: Endpoint["via"]) =>
    endpoints("web", [port], { via }).endpoints;
  rig.sink.set({
    services: [service("web")],
    endpoints: [{
      service: "default/web",
      endpoints: [
        ...at(1, { kind: "direct" }),
        ...at(2, { kind: "agent" }),
        ...at(3, { kind: "agent", agent }),
      ],
    }],
  });
  const [port] = statusOf(rig).services;
  assertEquals(
    port!.endpoints.map(({ via }) => via),
    ["direct", "agent", "agent uid=7"],
  );
});

Deno.test("labels are bounded, whatever the catalog holds", async () => {
  const quiet = () => ({
    load: 1,
    open: () => ({ address: "x", port: 1, close: () => {} }),
    left: () => {},
    drain: () => Promise.resolve(),
  });
  await using rig = new ProxyRig({ portProxies: { tcp: quiet } });
  const names = Array.from(
    { length: PORT_SERIES_MAX + 3 },
    (_, index) => `s${index}`,
  );
  const ports = [1, 2, 3];
  rig.sink.set({
    services: names.map((name) => service(name)),
    endpoints: names.map((name) => endpoints(name, ports)),
  });
  const registry = new MetricRegistry();
  registerProxyMetrics(registry, rig.proxy);
  const lines = registry.expose().split("\n");
  const series = (name: string) =>
    lines.filter((line) => line.startsWith(`tunnel_proxy_${name}{`));
  assertEquals(series("open_connections").length, PORT_SERIES_MAX + 1);
  assert(
    series("open_connections").at(-1)!.startsWith(
      `tunnel_proxy_open_connections{service="${OTHERS}",port="${OTHERS}",` +
        'protocol="tcp"} 3',
    ),
  );
  assertEquals(
    series("endpoint_connections_total").length,
    ENDPOINT_SERIES_MAX + 1,
  );
  assert(lines.includes(`tunnel_proxy_ports ${names.length}`));
});
