/**
 * Services that an agent serves on its machine, from a file of its own.
 *
 * @module
 */

import { AdminClient } from "../../admin/ask/admin_client.ts";
import { agentRoutes } from "../../admin/agent/agent_routes.ts";
import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { startJoinedAgent } from "../../agent/joined_agent.ts";
import { proxyEnvironment } from "../../net/dial/proxy_environment.ts";
import { RecordedLog } from "../support/watch/recorded_log.ts";
import { ask, ProxyRig } from "../support/rigs/proxy_rig.ts";
import { readToEnd } from "../support/peers/sockets.ts";
import { Tunnel } from "../support/rigs/tunnel_harness.ts";

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
  const folder = await Deno.makeTempDir();
  const socket = `${folder}/admin.sock`;
  const running = await startJoinedAgent(
    {
      ...await tunnel.agentOptions(),
      ...{ servicesFile, drainTimeoutMs: 0, adminAccess: { socket } },
    },
    { log, proxy: proxyEnvironment(() => undefined), show: agentRoutes },
  );
  await log.until(/^default\/web is served on/);
  const caller = await Deno.connect({ hostname: "127.0.0.1", port });
  assertEquals(await ask(caller, "hello"), "hello");
  await log.until(/^admin API opened/);
  const admin = `http://${running.addresses.admin}`;
  const path = "?service=default/web";
  const answer = await (await fetch(`${admin}/debug/proxy${path}`)).json();
  const { services: [web] } = answer;
  using client = new AdminClient("agent", { kind: "unix", path: socket });
  assertEquals(await client.get(`/v1/services${path}`), answer);
  const closed = await fetch(`${admin}/v1/services`);
  await closed.body?.cancel();
  assertEquals(closed.status, 401, "only its services are open to all users");
  assertEquals(web.listening, `127.0.0.1:${port}`);
  assertEquals([web.open, web.bytesToClients], [1, 5]);
  const metrics = await fetch(`http://${running.addresses.health}/metrics`);
  assertMatch(await metrics.text(), /^tunnel_proxy_ports 1$/m);
  running.shutdown();
  await assertRejects(
    () => readToEnd(caller),
    Deno.errors.ConnectionReset,
  );
  caller.close();
  await running.finished;
  await Deno.remove(folder, { recursive: true });
});
