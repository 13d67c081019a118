import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import { ScriptedSource } from "../../tests/support/watch/scripted_source.ts";
import { Catalog } from "./catalog.ts";
import { RECONCILE_MS_MAX, RECONCILE_MS_MIN } from "./source_input.ts";

Deno.test("sources are read again at times of their own", () => {
  const timers = new FakeTimers();
  const sources = [new ScriptedSource("a"), new ScriptedSource("b")];
  const draws = [0, 0.999];
  const random = () => draws.shift() ?? 0;
  const catalog = new Catalog({
    sources,
    timers,
    random,
    log: new RecordedLog(),
  });
  catalog.start();
  timers.advance(RECONCILE_MS_MIN);
  assertEquals(sources.map(({ reconciles }) => reconciles), [1, 0]);
  timers.advance(RECONCILE_MS_MAX - RECONCILE_MS_MIN);
  assertEquals(sources.map(({ reconciles }) => reconciles), [1, 1]);
  catalog.stop();
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
  const sources = [slow];
  const catalog = new Catalog({
    sources,
    timers,
    random: () => 0,
    log: new RecordedLog(),
  });
  catalog.start();
  timers.advance(10 * RECONCILE_MS_MAX);
  assertEquals(slow.reconciles, 1);
  catalog.stop();
  reading.resolve();
  await reading.promise.finally(() => {});
  await Promise.resolve();
  assertEquals(timers.pendingCount, 0);
});
