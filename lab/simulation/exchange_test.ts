import { assertEquals, assertMatch } from "@std/assert";
import { DialError } from "../../proto/peer/dial_error.ts";
import { ConduitProbe } from "../../tests/support/memory/conduit_probe.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import { type Circumstances, Exchange, type Excuse } from "./exchange.ts";
import { type DialPlan, planOf, type Trouble } from "./plan.ts";
import { Simulator } from "./simulator.ts";
import { runScenario, wholeTurn } from "./scenario.ts";

const LATENCY_MS = 40;
const FIRST_MS = 500;
const DIALS = 16;
const TALK = {
  ...{ bytes: 100, chunkBytes: 16_384, pauseAt: -1, pauseMs: 0, stallAt: -1 },
  ...{ stallMs: 0, isLate: false, resetAt: -1, endsLast: false },
};

/** So close that a PING of one is answered within the round trip of the next. */
const dials = Array.from({ length: DIALS }, (_, number): DialPlan => ({
  ...{ number, atMs: FIRST_MS + number * LATENCY_MS / 2, way: "direct" },
  ...{ isShared: false, protocol: "tcp", earlyBytes: 100, answer: "connect" },
  ...{ answerMs: 0, abortMs: -1, caller: TALK, target: TALK },
}));

const BREAKS: Readonly<
  Record<string, (atMs: number, index: number) => Trouble>
> = {
  "breaks": (atMs, index) => ({ kind: "cutLink", atMs, index, how: "lost" }),
  "swallows all": (atMs, index) => ({ kind: "swallowLink", atMs, index }),
};

for (const [what, troubleOf] of Object.entries(BREAKS)) {
  Deno.test(`what callers say first reaches one target each, whenever a link ${what}`, async () => {
    let lost = 0;
    for (const index of [0, 1]) {
      for (let step = 0; step < 16; step++) {
        const { failure, outcomes } = await runScenario({
          ...planOf(1_000),
          agents: [0, 1].map(() => ({ carrier: "streams", links: 1 })),
          ...{ linkLatencyMs: LATENCY_MS, localLatencyMs: 0, dials },
          ...{ dialTimeoutMs: 10_000, budgetBytes: 2 ** 28 },
          troubles: [troubleOf(FIRST_MS + step * LATENCY_MS / 2, index)],
        });
        assertEquals(failure, undefined);
        lost += outcomes.get("failed link-lost") ?? 0;
      }
    }
    // Words were under way: those dials fail, and are asked of nobody else.
    assertEquals(lost > 0, true);
  });
}

const CALM: Circumstances = { mayReset: false, mayHoldDials: false };
const HOLDING: Circumstances = { mayReset: false, mayHoldDials: true };
const PLAN = planOf(1_000);
const DIAL = {
  ...{ number: 0, atMs: 500, way: "connect", isShared: false } as const,
  ...{ protocol: "tcp", earlyBytes: 0, answer: "connect" } as const,
  ...{ answerMs: 0, abortMs: -1 },
  ...{ caller: TALK, target: TALK },
};

function link(isPackets: boolean): Excuse {
  return { number: 0, isPackets, trouble: undefined };
}

for (
  const [what, on, circumstances, isFault] of [
    ["on a calm link of packets", link(true), CALM, true],
    ["behind others on a link of streams", link(false), HOLDING, true],
    ["behind others on a link of packets", link(true), HOLDING, false],
  ] as const
) {
  Deno.test(`a dial that was granted and is late ${what} is ${isFault ? "a" : "no"} fault`, () => {
    const sim = new Simulator(1);
    const exchange = new Exchange(sim, DIAL, true);
    exchange.askedOver(on);
    exchange.dialFailed(new DialError("timeout", "no answer within 1 s"));
    exchange.check(circumstances);
    assertEquals(sim.failure !== undefined, isFault);
  });
}

Deno.test("a dial that is late on a link in trouble is excused, whoever is asked beside it", () => {
  const sim = new Simulator(1);
  const exchange = new Exchange(sim, DIAL, false);
  exchange.askedOver({ ...link(false), trouble: "swallowed" });
  exchange.askedOver(link(false));
  exchange.failed(new DialError("timeout", "no answer within 1 s"));
  exchange.check(CALM);
  assertEquals(sim.failure, undefined);
});

for (
  const [what, heard, failure] of [
    ["is told nothing may be connected as well", [], undefined],
    ["has heard the caller must be the only one", [0], "was said to two"],
    ["is left must not hear the caller", [1, 0], /receives \d+ bytes where 0/],
  ] as const
) {
  Deno.test(`a target that ${what}`, async () => {
    const sim = new Simulator(1);
    const exchange = new Exchange(sim, { ...DIAL, earlyBytes: 100 }, false);
    const lines = [0, 1].map((number) => {
      const on = { ...link(false), number };
      const [near, far] = MemoryConduit.pair();
      const caller = new ConduitProbe(near);
      exchange.askedOver(on);
      exchange.answerAt(far, on);
      return { on, caller };
    });
    lines[heard[0] ?? 1]!.caller.send(exchange.earlyData);
    await wholeTurn();
    exchange.chosen(lines[1]!.on);
    for (const one of heard.slice(1)) {
      lines[one]!.caller.send(exchange.earlyData);
    }
    await wholeTurn();
    const { failure: found } = sim;
    if (failure === undefined) assertEquals(found, undefined);
    else assertMatch(found ?? "", new RegExp(failure));
  });
}

Deno.test("a target is not dialed twice over one link", () => {
  const sim = new Simulator(1);
  const exchange = new Exchange(sim, DIAL, false);
  const on = link(false);
  for (const [, far] of [MemoryConduit.pair(), MemoryConduit.pair()]) {
    exchange.answerAt(far, on);
  }
  assertEquals(sim.failure, "conduit 0: dialed twice");
});

Deno.test("a dial that was granted may miss its deadline behind a caller that does not read", async () => {
  const { failure, outcomes } = await runScenario({
    ...PLAN,
    agents: [{ carrier: "packets", links: 1 }],
    troubles: [],
    ...{ dialTimeoutMs: 1_000, grantsEarly: true },
    ...{ windowBytes: 65_536, windowIsFixed: true },
    ...{ linkLatencyMs: 1, localLatencyMs: 0.1, budgetBytes: 2 ** 28 },
    dials: [
      {
        ...DIAL,
        way: "direct",
        caller: { ...DIAL.caller, stallAt: 900, stallMs: 45_000 },
        target: { ...DIAL.target, bytes: 2 ** 23 },
      },
      { ...DIAL, number: 1, atMs: 2_000 },
    ],
  });
  assertEquals(failure, undefined);
  // Both: the one that did not read, and the one behind it.
  assertEquals([...outcomes], [["reset", 2]]);
});
