import { assert, assertEquals } from "@std/assert";
import { MetricRegistry } from "../../../platform/metrics/metrics.ts";
import {
  ask,
  deadPort,
  endpoints,
  ProxyRig,
  service,
} from "../../../tests/support/rigs/proxy_rig.ts";
import { PortTimes } from "../listeners/proxied_port.ts";
import {
  OTHERS,
  PORT_SERIES_MAX,
  registerProxyHistograms,
} from "./proxy_metrics.ts";

const PREFIX = "tunnel_proxy_";
const WEB = 'namespace="default",service="default/web",port=""';

Deno.test("connect times and lengths are counted by service, once it is used", async () => {
  await using rig = new ProxyRig();
  rig.sink.set({
    services: [service("web"), service("idle"), service("dead")],
    endpoints: [
      endpoints("web", [rig.echo()]),
      endpoints("dead", [deadPort()]),
    ],
  });
  const registry = new MetricRegistry();
  registerProxyHistograms(registry, rig.proxy);
  const line = (name: string) =>
    registry.expose().split("\n").find((each) => each.startsWith(name));
  assertEquals(registry.expose(), "");

  const conn = await rig.connect("default/web");
  await ask(conn, "hello");
  assertEquals(
    line(`${PREFIX}connect_seconds_count`),
    `${PREFIX}connect_seconds_count{${WEB}} 1`,
  );
  assertEquals(line(`${PREFIX}connection_seconds`), undefined, "it goes on");
  conn.close();
  const ended = `${PREFIX}connection_seconds_count{${WEB}}`;
  const { proxy } = rig.proxy.served.get("default/web")!;
  await proxy.drain(0);
  assertEquals(line(ended), `${ended} 1`);

  // Nobody was there: no time to connect, and no connection.
  const { counts } = rig.proxy.served.get("default/dead")!.port;
  try {
    using refused = await rig.connect("default/dead");
    await refused.read(new Uint8Array(1));
  } catch (error) {
    if (!(error instanceof Deno.errors.ConnectionReset)) throw error;
  }
  assertEquals(counts.refused, 1);
  assertEquals(registry.expose().includes("default/dead"), false);
  assertEquals(registry.expose().includes("default/idle"), false);
});

Deno.test("ports beyond the limit are one histogram, and looking lets others in", () => {
  const served = new Map(
    Array.from({ length: PORT_SERIES_MAX + 3 }, (_, index) => {
      const timesSeen = new PortTimes();
      timesSeen.connect.observe(index < PORT_SERIES_MAX ? 0.002 : 20);
      const name = `default/s${index}`;
      return [name, {
        port: { namespace: "default", service: name, name: "", timesSeen },
      }];
    }),
  );
  const registry = new MetricRegistry();
  registerProxyHistograms(
    registry,
    { served } as unknown as Parameters<typeof registerProxyHistograms>[1],
  );
  const pieces = [...registry.pieces()];
  const counts = pieces.filter((piece) => piece.includes("_seconds_count{"));
  assertEquals(counts.length, PORT_SERIES_MAX + 1);
  assertEquals(
    counts.at(-1),
    `${PREFIX}connect_seconds_count{namespace="${OTHERS}",` +
      `service="${OTHERS}",port="${OTHERS}"} 3\n`,
  );
  assert(pieces.some((each) => each.includes(`"${OTHERS}",le="10"} 0`)));
  assert(pieces.filter((piece) => piece === "").length > 60);
});
