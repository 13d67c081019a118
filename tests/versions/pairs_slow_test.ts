import { runToEnd } from "../support/program/run.ts";
/**
 * Two versions beside each other keep what is promised of a tunnel: a server and
 * an agent, two servers of which one forwards to the other, and a server with
 * `dial` and `forward`.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import type { FrontendProtocol } from "../../client/tunnel_route.ts";
import { metricAt } from "../support/rigs/tunnel_harness.ts";
import { assertEchoes } from "../support/peers/datagram_echo.ts";
import { TunnelProcesses } from "../support/rigs/tunnel_processes.ts";
import {
  type PromiseCheck,
  PROMISES_ABOUT_ENDS,
  PROMISES_AMONG_OURS,
  PROMISES_TO_ALL,
} from "../support/rigs/tunnel_promises.ts";
import { commandOfVersion, PAIRS } from "./versions.ts";
import { ForwardingServers } from "../support/rigs/forwarding_servers.ts";
import { freePort } from "../support/program/ports.ts";
import { askEcho } from "../support/peers/steady_requests.ts";

/** What is sent and comes back; no two parts of it are the same. */
const TEXT = Array.from({ length: 400_000 }, (_, index) => `${index} `)
  .join("");

for (const [server, client] of PAIRS) {
  Deno.test(`versions: a server that is ${server}, dial and forward that are ${client}`, async () => {
    await using tunnel = await TunnelProcesses.start({ server, agent: server });
    const target = `127.0.0.1:${tunnel.echo()}`;
    const at = `--server=unix:${tunnel.socket}`;

    const { stdout, stderr } = await runToEnd(
      await commandOfVersion(client, ...["dial", target, at]),
      { input: TEXT },
    );
    assertEquals(stderr, "");
    assertEquals(stdout === TEXT, true, `${stdout.length} came back`);

    const port = freePort();
    const words = ["forward", `127.0.0.1:${port}:${target}`, at];
    const forward = tunnel.launch(
      "forward",
      await commandOfVersion(client, ...words),
    );
    await forward.untilPrinted(/->/);
    for (let count = 0; count < 20; count++) await askEcho(port)();
  });
}

const BYTES = 1024 * 1024;

for (const [asked, linked] of PAIRS) {
  Deno.test(`versions: a server that is ${asked} forwards to one that is ${linked}`, async () => {
    const programs = [
      await commandOfVersion(asked, "server"),
      await commandOfVersion(linked, "server"),
    ];
    await using rig = await ForwardingServers.start(
      [[1], [0]],
      () => ["--peer-forwarding"],
      programs,
    );
    await rig.link("edge-7", 1);
    for (const protocol of ["grpc", "http-connect"] as const) {
      const { caller, target } = await rig.connect({
        protocol,
        node: "edge-7",
        earlyData: new TextEncoder().encode("first"),
      });
      await target.received(5);
      const bytes = new Uint8Array(BYTES).map((_, at) => at % 251);
      caller.send(bytes);
      target.send(bytes);
      await Promise.all([target.received(BYTES + 5), caller.received(BYTES)]);
      assertEquals(target.bytes.slice(5), bytes);
      assertEquals(caller.bytes, bytes);
      // One direction ends, and the other goes on.
      caller.finish();
      await target.ended;
      target.send("last words");
      await caller.received(BYTES + 10);
      target.finish();
      assertEquals((await caller.closed).kind, "clean", protocol);
    }
    const reset = await rig.connect({ protocol: "grpc", node: "edge-7" });
    reset.target.reset("enough");
    assertEquals((await reset.caller.closed).kind, "reset");
    const address = { kind: "unix", path: rig.servers[0]!.socket } as const;
    await assertEchoes({
      via: { kind: "tunnel", protocol: "grpc", address },
      node: "edge-7",
    });
  });
}

const MANY = { ...PROMISES_TO_ALL, ...PROMISES_AMONG_OURS };

/** What becomes of a target when its agent is killed is the kernel's affair. */
const { "a broken link is a loss at the caller, never an end": _, ...ENDS } =
  PROMISES_ABOUT_ENDS;

const PROMISES: readonly [
  FrontendProtocol,
  Readonly<Record<string, PromiseCheck>>,
][] = [["http-connect", MANY], ["grpc", { ...MANY, ...ENDS }]];

for (const [server, agent] of PAIRS) {
  Deno.test(`versions: a server that is ${server}, an agent that is ${agent}`, async (test) => {
    await using tunnel = await TunnelProcesses.start({ server, agent });
    const health = new URL(tunnel.server.healthUrl).host;
    const links = (carrier: string) =>
      metricAt(health, `tunnel_server_links{carrier="${carrier}"}`);
    assert(await links("streams") > 0);
    assertEquals(await links("packets"), 0);
    for (const [protocol, promises] of PROMISES) {
      for (const [sentence, check] of Object.entries(promises)) {
        await test.step(`${protocol}: ${sentence}`, () =>
          check({
            protocol,
            target: tunnel.target,
            dial: (dial) => tunnel.dial(protocol, dial),
            connect: () => tunnel.connect(protocol),
            cut: () => {},
          }));
      }
    }
    const address = { kind: "unix", path: tunnel.socket } as const;
    await test.step("grpc: datagrams come and go as they were sent", () =>
      assertEchoes({ via: { kind: "tunnel", protocol: "grpc", address } }, [
        ...[0, 1, 1_400, 9_000, 65_507],
      ]));
    const { caller, target } = await tunnel.connect("grpc");
    target.send("the first half");
    await caller.mustReceive(14);
    tunnel.agent.child.signal("SIGKILL");
    assertEquals((await caller.closed).kind, "lost");
    assertEquals(caller.hasEnded, false);
    target.reset("over");
  });
}
