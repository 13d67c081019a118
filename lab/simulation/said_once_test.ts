/**
 * Promise 1 where it is hardest to keep: a link breaks at any moment around dials
 * that carry what their callers say first, and another agent could be asked.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { type DialPlan, planOf, type Trouble } from "./plan.ts";
import { runScenario } from "./scenario.ts";

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
