import { assertEquals } from "@std/assert";
import { DialError } from "../../proto/peer/dial_error.ts";
import { type Circumstances, Exchange, type Excuse } from "./exchange.ts";
import { planOf } from "./plan.ts";
import { Simulator } from "./simulator.ts";
import { runScenario } from "./scenario.ts";

const CALM: Circumstances = { mayReset: false, mayHoldDials: false };
const HOLDING: Circumstances = { mayReset: false, mayHoldDials: true };
const PLAN = planOf(1_000);
const TALK = {
  ...{ chunkBytes: 16_384, pauseAt: -1, pauseMs: 0, stallAt: -1, stallMs: 0 },
  ...{ isLate: false, resetAt: -1, endsLast: false },
};
const DIAL = {
  ...{ number: 0, atMs: 500, way: "connect", isShared: false } as const,
  ...{ protocol: "tcp", earlyBytes: 0, answer: "connect" } as const,
  ...{ answerMs: 0, abortMs: -1 },
  caller: { ...TALK, bytes: 100 },
  target: { ...TALK, bytes: 100 },
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
    exchange.link = on;
    exchange.dialFailed(new DialError("timeout", "no answer within 1 s"));
    exchange.check(circumstances);
    assertEquals(sim.failure !== undefined, isFault);
  });
}

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
