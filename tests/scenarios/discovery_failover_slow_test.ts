/**
 * A client of discovery that goes to another server, as processes: it is sent what
 * it does not have, and nothing else; and what one server is announced, all of one
 * directory tell.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { AdsClient } from "../../services/ads/ads_client.ts";
import { AdsConnection } from "../../services/ads/ads_connection.ts";
import { plainUpstream } from "../../net/channel/server_upstream.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { TYPE_URLS } from "../../proto/xds/resource.ts";
import { DiscoveryServer } from "../support/peers/discovery_server.ts";
import { freePort } from "../support/program/ports.ts";
import { Workspace } from "../support/program/workspace.ts";
import { NodeStage } from "../support/rigs/node_stage.ts";
import { Processes } from "../support/rigs/processes.ts";
import { proxyNode, readWhole } from "../../services/proxy/ads/ads_source.ts";
import type { WholeService } from "../../services/catalog/service_message.ts";
import { ask } from "../support/rigs/proxy_rig.ts";
import { eventually } from "../support/rigs/tunnel_harness.ts";
import { namesIn, XdsProbe } from "../support/xds/xds_probe.ts";

const SERVICES = 500;

/** Two servers of one catalog, which share nothing else. */
async function twoServers(workspace: Workspace) {
  const services = Array.from({ length: SERVICES }, (_, index) => ({
    name: `s${index}`,
    appProtocol: "http" as const,
    listen: 20_000 + index,
    endpoints: [`10.0.${index >> 8}.${index & 255}:80`],
  }));
  const config = { maker: "ours", services } as const;
  const one = await DiscoveryServer.start(workspace, config);
  const { file } = one;
  const two = await DiscoveryServer.start(workspace, { ...config, file });
  return { one, two };
}

Deno.test("a node proxy's client keeps all that it has when its server is killed", async () => {
  await using programs = new Processes(await Workspace.make());
  const stage = await twoServers(programs.workspace);
  for (const { child } of [stage.one, stage.two]) programs.keep(child);
  let changes = 0;
  const read: string[] = [];
  const client = new AdsClient<WholeService>({
    mode: "delta",
    node: proxyNode("n", ""),
    read: (kind, resource) => {
      read.push(resource.name);
      return readWhole(kind, resource);
    },
    timers: systemTimers,
    onChanged: (changed) => changes += changed.length,
  });
  client.want("service", true);
  const upstream = plainUpstream([stage.one, stage.two].map(({ port }) => ({
    host: "127.0.0.1",
    port,
  })));
  const connection = new AdsConnection({
    ...{ client, upstream, timers: systemTimers, random: Math.random },
  });
  connection.start();
  try {
    await eventually(
      "it has all",
      () => client.held("service").size === SERVICES,
    );
    const { state } = connection;
    assert(state.kind === "open");
    const isOne = state.server.endsWith(`:${stage.one.port}`);
    const before = changes;
    read.length = 0;
    await (isOne ? stage.one : stage.two).stop("SIGKILL");
    await eventually(
      "it is at the other server",
      () => connection.opened === 2,
    );
    // What follows its first response would have come by the time of a change.
    await stage.one.rewrite([{ name: "new", endpoints: ["10.9.9.9:80"] }]);
    await eventually("it hears of a change", () => changes > before);
    await eventually("of all of it", () => client.held("service").size === 1);
    assertEquals(read.length, 1, "the new one alone");
  } finally {
    await connection.stop();
  }
});

/** Whether the server of this port tells what is announced. */
async function tells(port: number): Promise<boolean> {
  using probe = await XdsProbe.plain(port);
  const stream = probe.sotw();
  stream.send({ node: { id: "n" }, typeUrl: TYPE_URLS.cluster });
  const response = await stream.next("cluster");
  return namesIn("cluster", response).includes("default/web:80");
}

/** What is answered at a port of this machine. */
async function answerAt(port: number, said: string): Promise<string> {
  using conn = await Deno.connect({ hostname: "127.0.0.1", port });
  return await ask(conn, said);
}

Deno.test("what one server is announced, all of one directory tell, also when it is killed", async () => {
  const [port, other] = [freePort(), freePort()];
  const flags = (id: string, port: number) => [
    ...["--discovery", `--server-id=${id}`],
    `--discovery-listen=127.0.0.1:${port}`,
  ];
  await using stage = await NodeStage.open(...flags("s0", port));
  const one = `127.0.0.1:${stage.server.agentPort}`;
  const second = stage.addSibling();
  await second.start(
    ...flags("s1", other),
    `--uds-name=${stage.workspace.path("two.sock")}`,
    `--handover-socket=${stage.workspace.path("two.handover")}`,
  );
  const target = stage.echo("edge-1: ");
  const announced = `--announce=web:80=127.0.0.1:${target}`;
  await stage.joined("edge-1", `--server=${one}`, announced);
  await eventually("its server tells it", () => tells(port));
  await eventually("the other one does", () => tells(other), 15_000);
  // A node that asks the other one first gets there all the same.
  await stage.join("edge-2");
  const servers = `127.0.0.1:${second.agentPort},${one}`;
  const proxy = await stage.proxy(
    "edge-2",
    ...[`--server=${servers}`, "--as-node", "--connect-listen=127.0.0.1:0"],
  );
  const [, relay] = await proxy.child
    .untilPrinted(/connect="?127\.0\.0\.1:(\d+)/);
  assertEquals(await answerAt(proxy.port, "hello"), "edge-1: hello");
  const head = `CONNECT 127.0.0.1:${target} HTTP/1.1\r\n` +
    "tunnel-node: id=edge-1\r\n\r\n";
  assertMatch(await answerAt(Number(relay), head), /^HTTP\/1.1 200 /);
  await stage.server.child.stop("SIGKILL");
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  assert(await tells(other));
});
