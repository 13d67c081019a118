import { assert, assertEquals, assertRejects } from "@std/assert";
import {
  benchRequest,
  type BenchService,
} from "../../proto/link/bench_wire.ts";
import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  BENCH_LIFETIME_MS,
  BENCH_WINDOW_BYTES,
  BenchConduit,
} from "./bench_conduit.ts";
import { parseRule } from "../../policy/rule.ts";
import { type RuleDecision, RuleSet } from "../../policy/rule_set.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import { abandon } from "../../proto/link/dial_handler.ts";
import {
  BENCH_CONDUITS_MAX,
  BenchTargets,
  isBenchDial,
} from "./bench_targets.ts";

const ANSWER = "tunnel-bench/1 ok node7 tunnel%2F0\n";

function setUp() {
  const timers = new FakeTimers();
  const state = { over: 0 };
  const host = { agentId: "node7", software: "tunnel/0" };
  const conduit = new BenchConduit(host, timers, () => state.over++);
  const probe = new ConduitProbe(conduit);
  return { timers, state, conduit, probe };
}

async function granted(service: BenchService) {
  const bench = setUp();
  await bench.probe.send(benchRequest(service));
  if (service !== "source") assertEquals(bench.probe.text, ANSWER);
  return bench;
}

Deno.test("a bench target echoes, and ends when its caller does", async () => {
  const { probe, state, timers } = await granted("echo");
  probe.send("hello");
  await probe.finish();
  assertEquals(probe.text, `${ANSWER}hello`);
  assertEquals([probe.hasEnded, probe.end], [true, { kind: "clean" }]);
  assertEquals([state.over, timers.pendingCount], [1, 0]);
});

Deno.test("a request in pieces, with bytes behind it, is one request", async () => {
  const { probe } = setUp();
  probe.send("tunnel-bench/1 ");
  probe.send("echo\nab");
  await probe.send("c");
  assertEquals(probe.text, `${ANSWER}abc`);
});

Deno.test("an echo holds no more than its window", async () => {
  const { probe } = await granted("echo");
  probe.stopReading();
  await probe.send(new Uint8Array(4 * BENCH_WINDOW_BYTES));
  assert(probe.queuedBytes >= 2 * BENCH_WINDOW_BYTES, "it took too much");
  await probe.startReading();
  assertEquals(probe.receivedBytes, ANSWER.length + 4 * BENCH_WINDOW_BYTES);
});

Deno.test("a source sends as fast as is read, a window ahead at most", async () => {
  const { probe } = setUp();
  probe.stopReading();
  await probe.send(benchRequest("source"));
  const ahead = probe.receivedBytes;
  assert(ahead >= BENCH_WINDOW_BYTES && ahead < 2 * BENCH_WINDOW_BYTES);
  probe.finish();
  await probe.startReading();
  assertEquals(probe.receivedBytes, ahead, "the caller had ended");
  assertEquals(probe.end, { kind: "clean" });
});

Deno.test("a discard counts, reports, and says the total at the end", async () => {
  const { probe } = await granted("discard");
  await probe.send(new Uint8Array(100_000));
  assertEquals(probe.text, `${ANSWER}100000\n`);
  await probe.send(new Uint8Array(1));
  assertEquals(probe.text, `${ANSWER}100000\n`, "too little to be reported");
  await probe.finish();
  assertEquals(probe.text, `${ANSWER}100000\n100001\n`);
  assertEquals(probe.end, { kind: "clean" });
});

Deno.test("reports that nobody reads do not pile up", async () => {
  const { probe, conduit } = await granted("discard");
  probe.stopReading();
  for (let i = 0; i < 1_000; i++) {
    conduit.write(new Uint8Array(65_536));
    await Promise.resolve();
  }
  await settled();
  assert(probe.receivedBytes < ANSWER.length + 20, probe.text);
  await probe.startReading();
  assertEquals(probe.text.split("\n").at(-2), "65536000");
});

Deno.test("who asks for something else is reset", async () => {
  for (const words of ["GET / HTTP/1.1\r\n\r\n", "x".repeat(5_000)]) {
    const { probe, state } = setUp();
    await probe.send(words);
    assertEquals([probe.end?.kind, state.over], ["reset", 1]);
  }
});

Deno.test("a forgotten bench connection ends by itself", async () => {
  const { probe, state, timers } = await granted("echo");
  timers.advance(BENCH_LIFETIME_MS - 1);
  assertEquals(probe.end, undefined);
  timers.advance(1);
  assertEquals([probe.end?.kind, state.over], ["reset", 1]);
});

const HOST = { agentId: "node7", software: "tunnel/0" };

Deno.test("bench connections are so many at a time", async () => {
  const targets = new BenchTargets(HOST, new FakeTimers());
  const first = await targets.dial();
  for (let i = 1; i < BENCH_CONDUITS_MAX; i++) await targets.dial();
  await assertRejects(() => targets.dial(), DialError, "128 bench connections");
  abandon(first, "done");
  await targets.dial();
});

Deno.test("an agent that is not to be measured says so", async () => {
  const targets = new BenchTargets(HOST, new FakeTimers(), 0);
  await assertRejects(() => targets.dial(), DialError, "--bench-target=false");
});

Deno.test("only the reserved name over TCP is the bench target", () => {
  const address = "bench.tunnel.invalid:7";
  assertEquals(isBenchDial({ protocol: "tcp", address }), true);
  assertEquals(isBenchDial({ protocol: "udp", address }), false);
  const other = "bench.tunnel.example:7";
  assertEquals(isBenchDial({ protocol: "tcp", address: other }), false);
});

Deno.test("the bench target is evaluated by its name, as any other target", async () => {
  const address = "bench.tunnel.invalid:7";
  const labelled = (text: string) => ({ rule: parseRule(text), label: text });
  const cases: [allow: string[], deny: string[], rule: string | undefined][] = [
    [["tcp:127.0.0.1:10250"], [], undefined],
    [["tcp:127.0.0.1:10250", "tcp:*.invalid:7"], [], "tcp:*.invalid:7"],
    [["tcp:10.0.0.0/8:*"], [], undefined],
    [["*:*:*"], ["*:*:1-1000"], undefined],
    [["*:*:*"], ["*:127.0.0.0/8:*"], "*:*:*"],
  ];
  for (const [allow, deny, rule] of cases) {
    const rules = new RuleSet({
      allow: allow.map(labelled),
      deny: deny.map(labelled),
    });
    const decisions: RuleDecision[] = [];
    const targets = new BenchTargets(HOST, new FakeTimers());
    const dialing = targets.dialBy(
      { protocol: "tcp", address },
      rules,
      (decision) => decisions.push(decision),
    );
    if (rule === undefined) {
      const { reason } = await assertRejects(() => dialing, DialError);
      assertEquals([reason, decisions[0]!.isAllowed], ["refused", false]);
    } else {
      abandon(await dialing, "done");
      assertEquals(decisions, [{ isAllowed: true, rule }]);
    }
  }
});
