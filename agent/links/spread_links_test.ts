import { assertEquals } from "@std/assert";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { setUp } from "../../tests/support/rigs/link_attempts.ts";
import { SPREAD_MS_MAX } from "./retry_waits.ts";

// The rig draws 0.5 of whatever is drawn.

Deno.test("a server that spreads its agents is left one by one", async () => {
  const s = setUp();
  await s.attempts[0]!.succeed("s1/p1");
  await s.attempts[0]!.drain(10_000);
  s.timers.advance(4_900);
  assertEquals(s.attempts.length, 1);
  s.timers.advance(200);
  assertEquals(s.attempts.length, 2);
  await s.attempts[1]!.succeed("s1/p2");
  // It was for that time, and not for the next one.
  await s.attempts[1]!.drain();
  s.timers.advance(200);
  assertEquals(s.attempts.length, 3);
});

Deno.test("no server keeps its agents from others for long", async () => {
  const s = setUp();
  await s.attempts[0]!.succeed("s1/p1");
  await s.attempts[0]!.drain(4_294_967_295);
  s.timers.advance(SPREAD_MS_MAX);
  assertEquals(s.attempts.length, 2);
});

Deno.test("a server that is gone before is looked for at once, if it was the only one", async () => {
  const alone = setUp();
  await alone.attempts[0]!.succeed("s1/p1");
  await alone.attempts[0]!.drain(10_000);
  await alone.attempts[0]!.lose("it has ended");
  alone.timers.advance(100);
  await settled();
  assertEquals(alone.attempts.length, 2);
  const beside = setUp({ addresses: ["a:1", "b:1"] });
  await beside.attempts[0]!.succeed("s1/p1", 2);
  await beside.attempts[1]!.succeed("s2/p1", 2);
  await beside.attempts[0]!.drain(10_000);
  await beside.attempts[0]!.lose("it has ended");
  const there = () =>
    beside.attempts.filter(({ address }) => address === "a:1").length;
  beside.timers.advance(4_000);
  assertEquals(there(), 1);
  beside.timers.advance(1_500);
  assertEquals(there(), 2);
});
