import { assertEquals, assertRejects } from "@std/assert";
import { parseRule } from "../../policy/rule.ts";
import { type RuleDecision, RuleSet } from "../../policy/rule_set.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import { abandon } from "../../proto/link/dial_handler.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  BENCH_CONDUITS_MAX,
  BenchTargets,
  isBenchDial,
} from "./bench_targets.ts";

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
  const options = { connectionsMax: 0 };
  const targets = new BenchTargets(HOST, new FakeTimers(), options);
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
