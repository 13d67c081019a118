/**
 * Services whose endpoints are behind agents, through whole tunnels.
 *
 * @module
 */

import { agentRoutes } from "../../admin/agent/agent_routes.ts";
import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import type { AgentIdentifier } from "../../services/catalog/model/model.ts";
import { openDialer } from "../../client/tunnel_dialer.ts";
import type { FrontendProtocol } from "../../client/tunnel_route.ts";
import { MachineDialer } from "../../services/proxy/endpoints/endpoint_dialer.ts";
import { startJoinedAgent } from "../../agent/joined_agent.ts";
import { proxyEnvironment } from "../../net/dial/proxy_environment.ts";
import { RecordedLog } from "../support/watch/recorded_log.ts";
import {
  ask,
  endpoints,
  ProxyRig,
  service,
} from "../support/rigs/proxy_rig.ts";
import { readToEnd, writeAll } from "../support/peers/sockets.ts";
import { Tunnel } from "../support/rigs/tunnel_harness.ts";

const KEY = "default/web";
const encode = (text: string) => new TextEncoder().encode(text);

/** A proxy whose route is `tunnel`'s, with one endpoint behind an agent. */
async function proxyThrough(
  tunnel: Tunnel,
  way: FrontendProtocol,
  port: number,
  agent?: AgentIdentifier,
) {
  const route = openDialer(await tunnel.route(way));
  const rig = new ProxyRig({ dialer: new MachineDialer({ tunnel: route }) });
  rig.sink.set({
    services: [service("web")],
    endpoints: [
      endpoints("web", [port], {
        via: { kind: "agent", ...(agent && { agent }) },
      }),
    ],
  });
  return {
    rig,
    async [Symbol.asyncDispose]() {
      await rig[Symbol.asyncDispose]();
      route.close();
    },
  };
}

Deno.test("an endpoint finds its agent by host, by uid and by prefix, or nobody", async () => {
  await using tunnel = await Tunnel.open();
  await tunnel.link({
    agentId: "a",
    identifiers: { host: ["n1"], uid: ["42"], cidr: ["10.1.0.0/16"] },
  });
  const names: readonly AgentIdentifier[] = [
    { key: "host", value: "n1" },
    { key: "uid", value: "42" },
    { key: "cidr", value: "10.1.0.0/16" },
  ];
  for (const way of ["grpc", "http-connect"] as const) {
    for (const agent of names) {
      await using through = await proxyThrough(tunnel, way, 1, agent);
      const { rig } = through;
      const echo = endpoints("web", [rig.echo()], {
        via: { kind: "agent", agent },
      });
      rig.sink.add({ endpoints: [echo] });
      const caller = await rig.connect(KEY);
      assertEquals(await ask(caller, "hello"), "hello");
      caller.close();
    }
    const other = { key: "uid", value: "43" } as const;
    await using through = await proxyThrough(tunnel, way, 1, other);
    const { rig } = through;
    const caller = await rig.connect(KEY);
    // Else it would be waited for, on the rig's clock.
    await writeAll(caller, encode("hello"));
    await assertRejects(
      () => readToEnd(caller),
      Deno.errors.ConnectionReset,
    );
    caller.close();
    const [backend] = rig.proxy.served.get(KEY)!.port.balancer.backends;
    assertMatch(backend!.lastError!, /no agent serves uid=43/);
  }
});

Deno.test("an agent serves the services of a file, shows them, and ends them with itself", async () => {
  await using tunnel = await Tunnel.open();
  await using echo = new ProxyRig();
  const listening = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listening.addr;
  listening.close();
  const servicesFile = await tunnel.file(JSON.stringify({
    services: [{
      name: "web",
      ports: [{ port: 80, listen: `127.0.0.1:${port}` }],
      endpoints: [{ address: "127.0.0.1", port: echo.echo() }],
    }],
  }));
  const log = new RecordedLog();
  const running = await startJoinedAgent(
    { ...await tunnel.agentOptions(), servicesFile, drainTimeoutMs: 0 },
    { log, proxy: proxyEnvironment(() => undefined), show: agentRoutes },
  );
  await log.until(/^default\/web is served on/);
  const caller = await Deno.connect({ hostname: "127.0.0.1", port });
  assertEquals(await ask(caller, "hello"), "hello");
  const response = await fetch(
    `http://${running.addresses.admin}/debug/proxy?service=default/web`,
  );
  const { ports } = await response.json();
  assertEquals(ports[0].listening, `127.0.0.1:${port}`);
  assertEquals([ports[0].open, ports[0].bytesToClients], [1, 5]);
  const metrics = await fetch(`http://${running.addresses.health}/metrics`);
  assertMatch(await metrics.text(), /^tunnel_proxy_ports 1$/m);
  running.shutdown();
  await assertRejects(
    () => readToEnd(caller),
    Deno.errors.ConnectionReset,
  );
  caller.close();
  await running.finished;
});
