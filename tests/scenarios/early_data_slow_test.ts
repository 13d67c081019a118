/**
 * Callers that speak first, and a line of one of two agents that is cut: in one
 * direction or in both, nearby or far away. They are served by the other agent.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { ConduitProbe } from "../support/memory/conduit_probe.ts";
import type { LineDirection } from "../support/peers/cuttable_line.ts";
import { SteadyDials } from "../support/peers/steady_dials.ts";
import { ProxyRig } from "../support/rigs/proxy_rig.ts";
import { Tunnel } from "../support/rigs/tunnel_harness.ts";
import { sleep } from "../support/watch/event_loop.ts";
import { patience } from "../support/watch/patience.ts";

const EARLY = new TextEncoder().encode("hello");
const CUT_MS = 4_000;

/** A dial that carries words, which come back. */
async function ask(
  tunnel: Tunnel,
  address: string,
  answered: () => void,
): Promise<void> {
  const conduit = await tunnel.dial("grpc", {
    target: { protocol: "tcp", address },
    earlyData: EARLY,
  });
  answered();
  const caller = new ConduitProbe(conduit);
  await caller.received(EARLY.length);
  assertEquals(caller.text, "hello");
  caller.reset("it was answered");
}

const CUTS: readonly (readonly LineDirection[])[] = [
  ["down"],
  ["up"],
  ["down", "up"],
];

for (const carrier of ["streams", "packets"] as const) {
  for (const delayMs of [0, 15]) {
    const title = `a line that is cut ${delayMs} ms away`;
    Deno.test(`${carrier}: callers that speak first lose next to nothing to ${title}`, async () => {
      await using tunnel = await Tunnel.open({});
      await using targets = new ProxyRig();
      const lines = [tunnel.newLine(), tunnel.newLine()];
      for (const [index, line] of lines.entries()) {
        line.delayMs = delayMs;
        const agentId = `agent-${index}`;
        await tunnel.link({ carrier, serverPort: line.port, agentId });
      }
      const address = `127.0.0.1:${targets.echo()}`;
      const dials = new SteadyDials((answered) =>
        ask(tunnel, address, answered)
      );
      await sleep(500);
      for (const directions of CUTS) {
        await dials.during(
          () => directions.forEach((one) => lines[0]!.block(one)),
          () => directions.forEach((one) => lines[0]!.unblock(one)),
          { brokenMs: CUT_MS, mendedMs: 1_000 },
        );
      }
      await dials.stop();
      // Those whose words were under way: none to an agent that is near, and to
      // one that is far those of two round trips, on a busy machine, too.
      const lostMax = delayMs === 0 || carrier === "packets" ? 1 : 4;
      const { failures, slowestMs } = dials;
      assert(failures.length <= lostMax * CUTS.length, failures.join("\n"));
      assert(slowestMs < patience(3_000), `${slowestMs} ms`);
    });
  }
}
