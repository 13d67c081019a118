import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { ScriptedSource } from "../../tests/support/watch/scripted_source.ts";
import { RECONCILE_MS_MAX, RECONCILE_MS_MIN, Reconciler } from "./catalog.ts";

Deno.test("sources are read again at times of their own", () => {
  const timers = new FakeTimers();
  const sources = [new ScriptedSource("a"), new ScriptedSource("b")];
  const draws = [0, 0.999];
  const reconciler = new Reconciler(sources, timers, () => draws.shift() ?? 0);
  reconciler.start();
  timers.advance(RECONCILE_MS_MIN);
  assertEquals(sources.map(({ reconciles }) => reconciles), [1, 0]);
  timers.advance(RECONCILE_MS_MAX - RECONCILE_MS_MIN);
  assertEquals(sources.map(({ reconciles }) => reconciles), [1, 1]);
  reconciler.stop();
  assertEquals(timers.pendingCount, 0);
});

Deno.test("a source that takes long is not asked meanwhile, and not after the end", async () => {
  const timers = new FakeTimers();
  const slow = new ScriptedSource("slow");
  const reading = Promise.withResolvers<void>();
  slow.reconcile = () => {
    slow.reconciles++;
    return reading.promise;
  };
  const reconciler = new Reconciler([slow], timers, () => 0);
  reconciler.start();
  timers.advance(10 * RECONCILE_MS_MAX);
  assertEquals(slow.reconciles, 1);
  reconciler.stop();
  reading.resolve();
  await reading.promise.finally(() => {});
  await Promise.resolve();
  assertEquals(timers.pendingCount, 0);
});
