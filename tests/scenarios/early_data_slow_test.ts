/**
 * Callers that speak first, and a line of one of two agents that is cut: in one
 * direction or in both, nearby or far away. They are served by the other agent.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { ConduitProbe } from "../support/memory/conduit_probe.ts";
import type { LineDirection } from "../support/peers/cuttable_line.ts";
import { ProxyRig } from "../support/rigs/proxy_rig.ts";
import { Tunnel } from "../support/rigs/tunnel_harness.ts";
import { sleep } from "../support/watch/event_loop.ts";
import { patience } from "../support/watch/patience.ts";

const EARLY = new TextEncoder().encode("hello");
const PAUSE_MS = 50;
const CUT_MS = 4_000;

/** Dials that carry words, one after each pause, whatever became of the last. */
class SteadyDials {
  readonly failures: string[] = [];
  slowestMs = 0;
  readonly #going = new Set<Promise<void>>();
  readonly #timer: ReturnType<typeof setInterval>;

  constructor(
    private readonly tunnel: Tunnel,
    private readonly address: string,
  ) {
    this.#timer = setInterval(() => {
      const asking = this.#ask();
      this.#going.add(asking);
      asking.finally(() => this.#going.delete(asking));
    }, PAUSE_MS);
  }

  async #ask(): Promise<void> {
    const startedMs = performance.now();
    try {
      const conduit = await this.tunnel.dial("grpc", {
        target: { protocol: "tcp", address: this.address },
        earlyData: EARLY,
      });
      this.#tookMs(startedMs);
      const caller = new ConduitProbe(conduit);
      await caller.received(EARLY.length);
      assertEquals(caller.text, "hello");
      caller.reset("it was answered");
    } catch (error) {
      this.failures.push((error as Error).message);
      this.#tookMs(startedMs);
    }
  }

  #tookMs(startedMs: number): void {
    this.slowestMs = Math.max(this.slowestMs, performance.now() - startedMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#going);
  }
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
      const dials = new SteadyDials(tunnel, `127.0.0.1:${targets.echo()}`);
      await sleep(500);
      for (const directions of CUTS) {
        for (const one of directions) lines[0]!.block(one);
        await sleep(CUT_MS);
        for (const one of directions) lines[0]!.unblock(one);
        await sleep(1_000);
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
