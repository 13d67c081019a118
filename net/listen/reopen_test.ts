import { assertEquals } from "@std/assert";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { REOPEN_CAP_MS, Reopener } from "./reopen.ts";

/** A listener that opens when `isPossible`. */
function scene() {
  const timers = new FakeTimers();
  const log: string[] = [];
  const world = { isPossible: false, tries: 0 };
  const reopener = new Reopener({
    timers,
    random: () => 1,
    open: () => {
      world.tries++;
      return world.isPossible
        ? Promise.resolve()
        : Promise.reject(new Error("no descriptors"));
    },
    close: () => log.push("close"),
    onFailure: ({ message }) => log.push(message),
    onOpen: () => log.push("open"),
  });
  return { timers, log, world, reopener };
}

Deno.test("a port is tried until it is open, and failures are told once", async () => {
  const { timers, log, world, reopener } = scene();
  reopener.start();
  for (let round = 0; round < 50; round++) {
    await settled();
    timers.advance(REOPEN_CAP_MS);
  }
  await settled();
  assertEquals(world.tries, 51);
  assertEquals(log, ["no descriptors"]);
  assertEquals(reopener.isOpening, true);
  world.isPossible = true;
  timers.advance(REOPEN_CAP_MS);
  await settled();
  assertEquals(log, ["no descriptors", "open"]);
  assertEquals(reopener.isOpening, false);
  assertEquals(timers.pendingCount, 0);
});

Deno.test("waits grow, and are short again the next time", async () => {
  const { timers, log, world, reopener } = scene();
  reopener.start();
  for (const waitMs of [100, 150, 225]) {
    await settled();
    const { tries } = world;
    timers.advance(waitMs - 1);
    assertEquals(world.tries, tries);
    world.isPossible = waitMs === 225;
    timers.advance(1);
    assertEquals(world.tries, tries + 1);
  }
  await settled();
  world.isPossible = false;
  reopener.start();
  reopener.start();
  await settled();
  assertEquals(log, ["no descriptors", "open", "no descriptors"]);
  const { tries } = world;
  timers.advance(100);
  assertEquals(world.tries, tries + 1);
});

Deno.test("a port that is closed meanwhile is not opened behind its owner's back", async () => {
  const { timers, log, world, reopener } = scene();
  reopener.start();
  await settled();
  reopener.stop();
  assertEquals(timers.pendingCount, 0);
  const late = scene();
  late.world.isPossible = true;
  late.reopener.start();
  late.reopener.stop();
  await settled();
  assertEquals(late.log, ["close"]);
  reopener.start();
  await settled();
  assertEquals([world.tries, log], [1, ["no descriptors"]]);
});
