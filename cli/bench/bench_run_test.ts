import { assertEquals } from "@std/assert";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { benchAnswer } from "../../proto/link/bench_wire.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import type { TunnelDialer } from "../../client/tunnel_dialer.ts";
import { runBench, STAND_MS } from "./bench_run.ts";
import type { BenchFigure, BenchGap, BenchPlan } from "./report.ts";

const PLANS: readonly BenchPlan[] = [
  { kind: "roundTrip", connections: 1 },
  { kind: "down", connections: 2 },
  { kind: "up", connections: 2 },
  { kind: "newConnections", connections: 2 },
];

/** Targets that say `greeting`, or nothing, and then nothing more. */
function mutes(greeting?: Uint8Array) {
  const conduits: MemoryConduit[] = [];
  const dialer: TunnelDialer = {
    dial(): Promise<Conduit> {
      const [near, far] = MemoryConduit.pair();
      far.attach({ onData() {}, onWritable() {}, onEnd() {}, onClose() {} });
      if (greeting !== undefined) far.write(greeting);
      conduits.push(near);
      return Promise.resolve(near);
    },
    close() {},
  };
  return { conduits, dialer };
}

type Options = Parameters<typeof runBench>[0];

/** Runs it to its end. */
async function ran(options: Omit<Options, "signal" | "told">) {
  const figures: BenchFigure[] = [];
  const gaps: BenchGap[] = [];
  let agentId: string | undefined;
  await runBench({
    ...options,
    signal: new AbortController().signal,
    told: {
      host: (host) => agentId = host.agentId,
      progress() {},
      figure: (figure) => figures.push(figure),
      gap: (gap) => gaps.push(gap),
    },
  });
  return { figures, gaps, agentId };
}

Deno.test("a target that says nothing leaves gaps, and nothing waits for ever", async () => {
  const { conduits, dialer } = mutes();
  const timers = new FakeTimers();
  const running = ran({
    dialer,
    timers,
    plans: PLANS,
    durationMs: 100,
    timeoutMs: 5_000,
  });
  for (let plan = 0; plan < PLANS.length; plan++) {
    await settled();
    timers.advance(5_000 + STAND_MS);
  }
  const { figures, gaps } = await running;
  const reason = "its connections did not stand after 20 s";
  assertEquals(figures, []);
  assertEquals(gaps, PLANS.map((plan) => ({ ...plan, reason })));
  assertEquals(conduits.length, 6);
  for (const conduit of conduits) assertEquals(conduit.closed?.kind, "reset");
  assertEquals(timers.pendingCount, 0);
});

Deno.test("one of several that does not stand costs the measurement, and none is left", async () => {
  const greeting = benchAnswer({ agentId: "node7", software: "tunnel/0" });
  const [willing, mute] = [mutes(greeting), mutes()];
  const dialers = [willing, mute].map(({ dialer }) => dialer);
  let dials = 0;
  const dialer: TunnelDialer = {
    dial: (dial) => dialers[dials++ % 2]!.dial(dial),
    close() {},
  };
  const timers = new FakeTimers();
  const plans = PLANS.slice(1, 2);
  const running = ran({ dialer, timers, plans, durationMs: 100 });
  await settled();
  timers.advance(60_000);
  assertEquals((await running).gaps.length, 1);
  for (const { closed } of [...willing.conduits, ...mute.conduits]) {
    assertEquals(closed?.kind, "reset");
  }
});

Deno.test("no sample in its time is a gap that says so", async () => {
  const greeting = benchAnswer({ agentId: "node7", software: "tunnel/0" });
  const { dialer } = mutes(greeting);
  const timers = new FakeTimers();
  const plans = PLANS.slice(0, 3);
  const running = ran({ dialer, timers, plans, durationMs: 100 });
  for (let plan = 0; plan < plans.length; plan++) {
    await settled();
    timers.advance(100);
  }
  const { agentId, figures, gaps } = await running;
  const reason = "nothing came back within 100 ms: measure longer";
  assertEquals([agentId, figures], ["node7", []]);
  assertEquals(gaps, plans.map((plan) => ({ ...plan, reason })));
});
