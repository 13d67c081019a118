import { assert, assertEquals } from "@std/assert";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { setUp } from "../../tests/support/rigs/link_attempts.ts";

Deno.test("beside a link whose server owes a sign of life another one is made, and it stays", async () => {
  const s = setUp();
  await s.attempts[0]!.succeed("s1/p1");
  await s.attempts[0]!.doubt(true);
  s.timers.advance(0);
  await settled();
  assertEquals(s.attempts.length, 2);
  await s.attempts[1]!.succeed("s1/p1");
  assertEquals(s.said, ["linked s1", "linked s1"]);
  assertEquals(s.attempts[0]!.closed, undefined);
  s.timers.advance(60_000);
  assertEquals(s.attempts.length, 2, "there is peace");
  await s.attempts[0]!.lose("no answer to PING");
  s.timers.advance(60_000);
  assertEquals(s.attempts.length, 2, "and the one that was made is enough");
});

Deno.test("doubts that come and go make no crowd of links", async () => {
  const s = setUp({ links: 2 });
  for (let round = 0; round < 20; round++) {
    for (const attempt of [...s.attempts]) await attempt.doubt(true);
    s.timers.advance(1_000);
    await settled();
    const last = s.attempts.at(-1)!;
    await last.succeed("s1/p1");
    for (const attempt of s.attempts) await attempt.doubt(false);
    s.timers.advance(1_000);
    await settled();
  }
  const stand = s.said.filter((line) => line === "linked s1").length;
  assert(stand <= 4, `${stand} links`);
});

Deno.test("when the network is another one, links are asked and waits are over", async () => {
  const s = setUp({ addresses: ["a:1", "b:1"] });
  const [first, second] = s.attempts;
  await first!.succeed("s1/p1");
  for (let round = 0; round < 15; round++) {
    await s.attempts.at(-1)!.fail("network is unreachable");
    s.timers.advance(10_000);
    await settled();
  }
  await s.attempts.at(-1)!.fail("network is unreachable");
  assert(s.retries.at(-1)! > 2_000);
  const before = s.attempts.length;
  s.agentLinks.recheck();
  assertEquals([first!.checked, second!.checked], [1, 0]);
  s.timers.advance(100);
  await settled();
  assertEquals(s.attempts.length, before + 1);
  // It fails again: waits are short, as after a success.
  await s.attempts.at(-1)!.fail("network is unreachable");
  assert(s.retries.at(-1)! <= 150, `${s.retries.at(-1)}`);
});

Deno.test("an attempt of the network that there was is begun anew, a fresh one is not", async () => {
  const s = setUp();
  s.timers.advance(100);
  s.agentLinks.recheck();
  await settled();
  s.timers.advance(100);
  assertEquals(s.attempts.length, 1);
  s.agentLinks.recheck();
  await settled();
  s.timers.advance(100);
  await settled();
  assertEquals(s.attempts.length, 2);
  assertEquals(s.said, [], "nothing went wrong");
  await s.attempts[1]!.succeed("s1");
  assertEquals(s.agentLinks.linkedServers, 1);
});
