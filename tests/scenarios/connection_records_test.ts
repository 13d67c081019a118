/**
 * What is written down of connections: the audit logs, the metrics and the log,
 * of a server and an agent, on every route.
 *
 * @module
 */

import { assertEquals, assertMatch } from "@std/assert";
import { forward } from "../../client/forward.ts";
import { openDialer } from "../../client/tunnel_dialer.ts";
import type { FrontendProtocol } from "../../client/tunnel_route.ts";
import { abandon } from "../../proto/link/dial_handler.ts";
import type { Carrier } from "../../proto/link/link.ts";
import { MachineDialer } from "../../services/proxy/endpoints/endpoint_dialer.ts";
import { endpoints, ProxyRig, service } from "../support/rigs/proxy_rig.ts";
import { closedAddress } from "../support/peers/probe_target.ts";
import type { RecordedLog } from "../support/watch/recorded_log.ts";
import { readToEnd, writeAll } from "../support/peers/sockets.ts";
import { Trouble } from "../support/memory/trouble.ts";
import {
  eventually,
  metricAt,
  portOf,
  Tunnel,
  type TunnelAgent,
} from "../support/rigs/tunnel_harness.ts";

const CARRIERS: readonly Carrier[] = ["streams", "packets"];
const WAYS: readonly FrontendProtocol[] = ["grpc", "http-connect"];

/** Like a POST: it leaves with the dial. */
const REQUEST = new Uint8Array(3_000).fill(80);
const ANSWER = "HTTP/1.1 200 OK\r\n\r\n".padEnd(555, "x");

/** A tunnel whose two ends keep audit logs. */
class Recorded implements AsyncDisposable {
  #isOpen = true;

  private constructor(
    readonly tunnel: Tunnel,
    readonly agent: TunnelAgent,
    readonly folder: string,
  ) {}

  static async open(carrier: Carrier): Promise<Recorded> {
    const folder = await Deno.makeTempDir();
    const audit = (name: string) => ({
      path: `${folder}/${name}`,
      bytesMax: 1e6,
      filesMax: 2,
    });
    const tunnel = await Tunnel.open({
      server: { authorization: { audit: audit("server") } },
    });
    const agent = await tunnel.link({ carrier, audit: audit("agent") });
    return new Recorded(tunnel, agent, folder);
  }

  /** Ends both, and tells what their audit logs say of the one connection. */
  async ended(): Promise<unknown[]> {
    await this.#close();
    const ends = [];
    for (const name of ["server", "agent"]) {
      ends.push(...endsIn(await Deno.readTextFile(`${this.folder}/${name}`)));
    }
    return ends;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
    await Deno.remove(this.folder, { recursive: true });
  }

  async #close(): Promise<void> {
    if (this.#isOpen) await this.tunnel[Symbol.asyncDispose]();
    this.#isOpen = false;
  }
}

function endsIn(text: string): unknown[] {
  return text.trim().split("\n")
    .map((line) => JSON.parse(line))
    .filter(({ event }) => event === "end")
    .map(({ end, bytesToTarget, bytesFromTarget }) => [
      end,
      bytesToTarget,
      bytesFromTarget,
    ]);
}

/** A request, an answer, and both ends, through a port that stands for them. */
async function exchange({ tunnel }: Recorded, port: number): Promise<void> {
  const caller = await Deno.connect({ hostname: "127.0.0.1", port });
  await writeAll(caller, REQUEST);
  const far = await tunnel.target.next();
  await far.received(REQUEST.length);
  await caller.closeWrite();
  await far.ended;
  far.send(ANSWER);
  far.finish();
  assertEquals((await readToEnd(caller)).length, ANSWER.length);
  caller.close();
}

/** How `log` tells of the one connection. */
async function lineOf(log: RecordedLog): Promise<unknown> {
  const opened = await log.until(/^connection opened$/);
  const { level, fields } = await log.until(/^connection ended$/);
  assertEquals([opened.level, level], ["detail", "detail"]);
  assertEquals(opened.fields["target"], fields["target"]);
  const { end, bytesToTarget, bytesFromTarget } = fields;
  return [end, bytesToTarget, bytesFromTarget];
}

async function assertRecorded(recorded: Recorded): Promise<void> {
  const { tunnel, agent } = recorded;
  const whole = ["clean", REQUEST.length, ANSWER.length];
  assertEquals(await lineOf(tunnel.log), whole);
  assertEquals(await lineOf(agent.log), whole);
  const moved = (direction: string) =>
    `tunnel_server_bytes_total{direction="${direction}"}`;
  assertEquals(await tunnel.metric(moved("to_agent")), REQUEST.length);
  assertEquals(await tunnel.metric(moved("from_agent")), ANSWER.length);
  const { health } = agent.running.addresses;
  const toTarget = 'tunnel_agent_bytes_total{direction="to_target"}';
  assertEquals(await metricAt(health, toTarget), REQUEST.length);
  assertEquals(await recorded.ended(), [whole, whole]);
}

for (const carrier of CARRIERS) {
  for (const way of WAYS) {
    Deno.test(`${carrier}, ${way}: what goes with a forward's dial is recorded at both ends`, async () => {
      await using recorded = await Recorded.open(carrier);
      const { tunnel } = recorded;
      const dialer = openDialer(await tunnel.route(way));
      const trouble = new Trouble();
      const port = await forward({
        hostname: "127.0.0.1",
        port: 0,
        protocol: "tcp",
        address: tunnel.target.address,
        dialer,
        onRefused: trouble.report,
        onProblem: trouble.report,
      });
      await trouble.instead(exchange(recorded, portOf(port.listening)));
      await port.close();
      dialer.close();
      await assertRecorded(recorded);
    });

    Deno.test(`${carrier}, ${way}: what goes with a service proxy's dial is recorded, by it as well`, async () => {
      await using recorded = await Recorded.open(carrier);
      const { tunnel } = recorded;
      const route = openDialer(await tunnel.route(way));
      await using rig = new ProxyRig({
        dialer: new MachineDialer({ tunnel: route }),
      });
      rig.sink.set({
        services: [service("web")],
        endpoints: [
          endpoints("web", [portOf(tunnel.target.address)], {
            via: { kind: "agent" },
          }),
        ],
      });
      await exchange(recorded, rig.portOf("default/web"));
      const { port } = rig.proxy.served.get("default/web")!;
      await eventually(
        "the proxy has counted",
        () => port.counts.bytesToClients === ANSWER.length,
      );
      assertEquals(port.counts.bytesFromClients, REQUEST.length);
      const whole = ["clean", REQUEST.length, ANSWER.length];
      assertEquals(await lineOf(rig.log), whole);
      route.close();
      await assertRecorded(recorded);
    });
  }

  for (const way of WAYS) {
    Deno.test(`${carrier}, ${way}: the caller's id stands in all logs`, async () => {
      await using recorded = await Recorded.open(carrier);
      const { tunnel, agent, folder } = recorded;
      const target = { protocol: "tcp", address: tunnel.target.address };
      const id = "f0e1d2c3b4a59687";
      const conduit = await tunnel.dial(way, { target, id });
      for (const log of [tunnel.log, agent.log]) {
        const { fields } = await log.until(/^connection opened$/);
        assertEquals(fields["id"], id);
      }
      abandon(conduit, "the test is over");
      await recorded.ended();
      for (const name of ["server", "agent"]) {
        const lines = (await Deno.readTextFile(`${folder}/${name}`)).trim()
          .split("\n").map((line) => JSON.parse(line).id);
        assertEquals(lines, [id, id]);
      }
    });
  }

  Deno.test(`${carrier}: a datagram that goes with its dial is recorded at both ends`, async () => {
    await using recorded = await Recorded.open(carrier);
    const { tunnel, agent } = recorded;
    const silent = Deno.listenDatagram({
      transport: "udp",
      hostname: "127.0.0.1",
      port: 0,
    });
    const target = {
      protocol: "udp",
      address: `127.0.0.1:${(silent.addr as Deno.NetAddr).port}`,
    };
    const conduit = await tunnel.dial("grpc", {
      target,
      earlyData: new Uint8Array(300),
    });
    const [datagram] = await silent.receive();
    assertEquals(datagram.length, 300);
    abandon(conduit, "the test is over");
    for (const log of [tunnel.log, agent.log]) {
      const { fields } = await log.until(/^connection ended$/);
      assertEquals(fields["bytesToTarget"], 300);
    }
    silent.close();
  });

  Deno.test(`${carrier}: who cannot be connected is said by default, at both ends`, async () => {
    await using tunnel = await Tunnel.open();
    const agent = await tunnel.link({ carrier, agentId: "edge-1" });
    const address = closedAddress();
    const target = { protocol: "tcp", address };
    for (const way of WAYS) {
      await tunnel.dial(way, { target }).catch(() => {});
    }
    for (const log of [tunnel.log, agent.log]) {
      const lines = log.matching(/^connection failed: .*connection refused/);
      assertEquals(lines.map(({ level }) => level), ["event", "event"]);
      assertEquals(lines[0]!.fields["target"], `tcp ${address}`);
    }
    const { fields } = await tunnel.log.until(/^connection failed/);
    assertEquals(fields["node"], "edge-1");
    assertMatch(String(fields["who"]), /^socket \//);
    // Nobody says it twice.
    assertEquals(tunnel.log.matching(/^CONNECT refused/), []);
  });
}

Deno.test("a client of a service proxy that finds nobody is said by default, each try as a detail", async () => {
  await using rig = new ProxyRig();
  const dead = portOf(closedAddress());
  rig.serves(service("web"), [dead]);
  // It may be reset before it knows that it is connected.
  const connecting = rig.connect("default/web").catch(() => undefined);
  const { level, fields } = await rig.log.until(/^connection failed: /);
  assertEquals([level, fields["service"]], ["event", "default/web"]);
  assertMatch(String(fields["from"]), /^127\.0\.0\.1:\d+$/);
  const [tried] = rig.log.matching(/cannot reach 127/);
  assertEquals(tried!.level, "detail");
  (await connecting)?.close();
});

Deno.test("that nobody serves a target is said by default", async () => {
  await using tunnel = await Tunnel.open();
  const target = { protocol: "tcp", address: "10.0.0.7:80" };
  await tunnel.dial("http-connect", { target, node: "edge-9" }).catch(() => {});
  const { level, fields } = await tunnel.log.until(/^connection failed: No ag/);
  assertEquals([level, fields["node"]], ["event", "edge-9"]);
});

Deno.test("an access log has the same connections at both ends, and is opened anew", async () => {
  const folder = await Deno.makeTempDir();
  const access = (name: string) => ({
    file: { path: `${folder}/${name}`, bytesMax: 1e6, filesMax: 2 },
    format: "json" as const,
    sample: 1,
  });
  const linesOf = async (name: string) =>
    (await Deno.readTextFile(`${folder}/${name}`)).trim().split("\n")
      .map((line) => JSON.parse(line));
  {
    await using tunnel = await Tunnel.open({
      server: { access: access("server") },
    });
    const agent = await tunnel.link({ access: access("agent") });
    const target = { protocol: "tcp", address: tunnel.target.address };
    const [low, high] = ["4000000040000000", "40000000c0000000"];
    for (const id of [low, high]) {
      const conduit = await tunnel.dial("grpc", { target, id });
      abandon(conduit, "enough");
    }
    const nobody = { protocol: "tcp", address: closedAddress() };
    await tunnel.dial("grpc", { target: nobody, id: high }).catch(() => {});
    const written = (lines: number) =>
      eventually("both have written", async () => {
        const both = await Promise.all(
          ["server", "agent"].map((name) => linesOf(name).catch(() => [])),
        );
        return both.every(({ length }) => length === lines);
      });
    await written(3);
    for (const name of ["server", "agent"]) {
      const lines = await linesOf(name);
      assertEquals(lines.map(({ id, status }) => `${id} ${status}`).sort(), [
        ...[`${low} 200`, `${high} 200`, `${high} 502`],
      ]);
      const { end } = lines.find(({ id }) => id === low);
      assertEquals(end, "reset");
      await Deno.rename(`${folder}/${name}`, `${folder}/${name}.old`);
    }
    tunnel.server.reload();
    agent.running.reload();
    const conduit = await tunnel.dial("grpc", { target, id: low });
    abandon(conduit, "enough");
    await written(1);
  }
  for (const name of ["server", "agent"]) {
    assertEquals((await linesOf(name)).map(({ id }) => id), [
      "4000000040000000",
    ]);
  }
  await Deno.remove(folder, { recursive: true });
});
