/** Server and agent of two versions keep what is promised of a tunnel. */

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
import { PAIRS } from "./versions.ts";

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
    const { frontend } = tunnel.server;
    if (frontend.transport !== "uds") throw new TypeError("Expected a socket");
    const address = { kind: "unix", path: frontend.path } as const;
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
