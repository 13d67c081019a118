import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../../tests/support/memory/fake_timers.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import {
  failed,
  fine,
  firstFault,
  HOP_MS,
  walk,
  WALK_MS,
} from "./path_walk.ts";

const timers = systemTimers;

Deno.test("behind a failure only what is independent of it is looked at", async () => {
  const steps = await walk([
    { name: "a", look: () => fine("good") },
    { name: "b", look: () => failed("TUN401", "bad", "mend it") },
    { name: "c", look: () => fine("never") },
    { name: "d", isIndependent: true, look: () => fine("seen") },
    { name: "none", isIndependent: true, look: () => undefined },
  ]);
  assertEquals(
    steps.map(({ hop, outcome }) => `${hop} ${outcome}`),
    ["a ok", "b failed", "c skipped", "d ok"],
  );
  assertEquals(steps[2]!.message, "not reached: b failed");
  assertEquals(firstFault(steps)?.hop, "b");
});

Deno.test("what throws has failed, in its own words", async () => {
  const [step] = await walk([{
    name: "a",
    look: () => {
      throw new Error("no such thing");
    },
  }], { timers });
  assertEquals([step!.outcome, step!.message], ["failed", "no such thing"]);
});

Deno.test("a hop that does not end costs its deadline, all of them the walk's", async () => {
  const fake = new FakeTimers();
  const hangs = () => new Promise<undefined>(() => {});
  const names = ["a", "b", "c", "d"];
  const walking = walk(
    names.map((name) => ({ name, isIndependent: true, look: hangs })),
    { timers: fake },
  );
  for (const _ of names) {
    await new Promise((resolve) => setTimeout(resolve, 0));
    fake.advance(HOP_MS);
  }
  const steps = await walking;
  const late = steps.filter(({ outcome }) => outcome === "failed");
  assertEquals(late.length, Math.ceil(WALK_MS / HOP_MS));
  assertEquals(steps.at(-1)!.message, "no time was left to look at it");
});
