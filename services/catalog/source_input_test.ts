import { assertEquals } from "@std/assert";
import type { Log } from "../../platform/log/log.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import { SourceInput } from "./source_input.ts";

Deno.test("what goes wrong with one source has one key, whatever its words", () => {
  const keys: (string | undefined)[] = [];
  const log: Log = Object.assign(new RecordedLog(), {
    warn: (_message: string, _fields?: unknown, key?: string) =>
      void keys.push(key),
  });
  const source = {
    name: "kubernetes",
    start: () => {},
    stop: () => Promise.resolve(),
    reconcile: () => Promise.resolve(),
  };
  const input = new SourceInput(source, {
    log,
    timers: new FakeTimers(),
    random: () => 0,
    onChanged: () => {},
    onSynced: () => {},
  });
  input.failed("no answer from https://a:1: refused", 100);
  input.failed("no answer from https://a:1: refused", 200);
  input.failed("no answer from https://a:1: timed out", 400);
  assertEquals(keys, ["source kubernetes", "source kubernetes"]);
  assertEquals(input.status.failures, 3);
});
