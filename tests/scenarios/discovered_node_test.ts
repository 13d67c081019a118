/**
 * `tunnel proxy --discovery` on a node that has joined, with the flags that a
 * person would give: told by the agent port who it is, and carried through it.
 *
 * @module
 */

import { nodeRoutes } from "../../admin/agent/agent_routes.ts";
import { assertEquals, assertMatch } from "@std/assert";
import { startNodeProxy } from "../../agent/proxy/node_proxy.ts";
import type { ProxyStatus } from "../../services/proxy/status/proxy_status.ts";
import { PROXY_FLAGS } from "../../cli/proxy/flags.ts";
import { proxyOptions } from "../../cli/proxy/options.ts";
import { readFlags } from "../../cli/flags/read_flags.ts";
import type { CatalogPart } from "../../services/catalog/model/source.ts";
import { proxyKeepsNothing } from "../support/program/tunnel.ts";
import { Machine } from "../support/rigs/enrolled_agent.ts";
import { IdentityRig } from "../support/rigs/identity_rig.ts";
import {
  ask,
  endpoints,
  ProxyRig,
  service,
} from "../support/rigs/proxy_rig.ts";
import { RecordedLog } from "../support/watch/recorded_log.ts";
import { ScriptedSource } from "../support/watch/scripted_source.ts";

/** A server that tells `part`, and lets nodes join. */
async function serving(part: CatalogPart): Promise<IdentityRig> {
  const source = new ScriptedSource("script");
  const rig = await IdentityRig.open({}, undefined, {
    discovery: {
      ...{ sources: [source], windowMinMs: 50, windowMaxMs: 1_000 },
      // No agent has to come back to a server that is new.
      settleMs: 0,
    },
  });
  source.sink.set(part);
  source.sink.synced();
  return rig;
}

/** A proxy of these flags that runs. */
function proxyOf(...argv: readonly string[]) {
  const log = new RecordedLog();
  const context = {
    argv: [
      ...[...argv, "--admin-port=0", "--drain-timeout=0s"],
      ...proxyKeepsNothing(argv),
    ],
    environment: () => undefined,
    readFile: (path: string) => Deno.readTextFileSync(path),
    print() {},
    printError() {},
  };
  const reading = readFlags("proxy", PROXY_FLAGS, context);
  const running = startNodeProxy(
    proxyOptions(reading, context, log),
    log,
    nodeRoutes,
  );
  return {
    log,
    async status(): Promise<ProxyStatus> {
      return await (await fetch(`http://${running.admin}/debug/proxy`)).json();
    },
    async metrics(): Promise<string> {
      return await (await fetch(`http://${running.admin}/metrics`)).text();
    },
    async [Symbol.asyncDispose]() {
      running.stop("the test is over");
      await running.finished;
    },
  };
}

Deno.test("a node that has joined is sent services, and reaches those behind other nodes", async () => {
  await using backends = new ProxyRig();
  const via = { kind: "agent", agent: { key: "host", value: "far" } } as const;
  await using rig = await serving({
    services: [service("web"), service("near")],
    endpoints: [
      endpoints("web", [backends.echo("far: ")], { via }),
      endpoints("near", [backends.echo("near: ")]),
    ],
  });
  using far = new Machine("far");
  await far.link(rig, { token: await rig.token() });
  using here = new Machine("here");
  await here.link(rig, { token: await rig.token() });
  await using proxy = proxyOf(
    `--discovery=https://127.0.0.1:${rig.tunnel.agentPort}`,
    `--state-dir=${here.stateDirectory}`,
    "--discovery-state=none",
    "--local-addresses=ports",
  );
  await proxy.log.until(/^default\/web is served on /);
  await proxy.log.until(/^default\/near is served on /);
  const status = await proxy.status();
  assertEquals(status.discovery?.state, "open");
  assertEquals(status.discovery?.node, "here/proxy");
  for (const { service, listening } of status.services) {
    const conn = await Deno.connect({
      hostname: "127.0.0.1",
      port: Number(listening!.split(":").at(-1)),
    });
    const expected = service === "default/web" ? "far: hi" : "near: hi";
    assertEquals(await ask(conn, "hi"), expected);
    conn.close();
  }
  const metrics = await proxy.metrics();
  assertMatch(metrics, /^tunnel_discovery_client_connected 1$/m);
  assertMatch(
    metrics,
    /^tunnel_discovery_client_resources\{kind="service"\} 2$/m,
  );
});

Deno.test("a node that was forgotten is sent nothing, and serves what it knew", async () => {
  await using backends = new ProxyRig();
  await using rig = await serving({
    services: [service("web")],
    endpoints: [endpoints("web", [backends.echo("web: ")])],
  });
  using here = new Machine("here");
  const { running } = await here.link(rig, { token: await rig.token() });
  running.stop("only its identity is wanted");
  await running.finished;
  await using proxy = proxyOf(
    `--discovery=https://127.0.0.1:${rig.tunnel.agentPort}`,
    `--state-dir=${here.stateDirectory}`,
    `--discovery-state=${here.stateDirectory}/../kept`,
  );
  await proxy.log.until(/^default\/web is served on /);
  await rig.nodes.forget("here", rig.tokens);
  const { message } = await proxy.log.until(/^Cannot follow discovery/);
  assertMatch(message, /what was known stays in use$/);
  const status = await proxy.status();
  assertEquals(status.services.map(({ service }) => service), ["default/web"]);
  assertEquals(status.sources[0]!.isSynced, true);
});
