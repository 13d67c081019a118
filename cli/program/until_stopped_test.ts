import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { RecordedErrors } from "../../tests/support/watch/recorded_errors.ts";
import { slip } from "../../tests/support/watch/recorded_faults.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import { untilStopped } from "./until_stopped.ts";

Deno.test("the first signal asks, the second one ends", async () => {
  const reported: string[] = [];
  const listeners = new Map<string, () => void>();
  const finished = Promise.withResolvers<void>();
  const stopped = untilStopped({
    finished: finished.promise,
    shutdown: () => reported.push("shutdown"),
    stop: (reason) => {
      reported.push(reason);
      finished.resolve();
    },
    reload: () => reported.push("reload"),
  }, {
    addSignalListener: (signal, listener) => listeners.set(signal, listener),
    removeSignalListener: (signal) => listeners.delete(signal),
  });
  listeners.get("SIGHUP")!();
  assertEquals(reported.splice(0), ["reload"]);
  listeners.get("SIGTERM")!();
  assertEquals(reported, ["shutdown"]);
  listeners.get("SIGINT")!();
  await stopped;
  assertEquals(reported, ["shutdown", "a second signal came"]);
  assertEquals(listeners.size, 0);
});

Deno.test("who cannot even begin to end is ended at once", async () => {
  using recorded = new RecordedErrors();
  const reported: string[] = [];
  const listeners = new Map<string, () => void>();
  const finished = Promise.withResolvers<void>();
  const stopped = untilStopped({
    finished: finished.promise,
    shutdown: slip,
    stop: (reason) => {
      reported.push(reason);
      finished.resolve();
    },
    reload: slip,
  }, {
    addSignalListener: (signal, listener) => listeners.set(signal, listener),
    removeSignalListener: (signal) => listeners.delete(signal),
  });
  listeners.get("SIGHUP")!();
  listeners.get("SIGTERM")!();
  await stopped;
  assertEquals(reported, ["it could not end in order"]);
  assertEquals(recorded.messages, ["a slip", "a slip"]);
});

Deno.test("who waits for the end is told how not to, and nobody else", async () => {
  for (const signal of ["SIGINT", "SIGTERM"]) {
    const log = new RecordedLog();
    const timers = new FakeTimers();
    const listeners = new Map<string, () => void>();
    const finished = Promise.withResolvers<void>();
    const stopped = untilStopped(
      {
        finished: finished.promise,
        shutdown: () => {},
        stop: () => finished.resolve(),
        reload: () => {},
      },
      {
        addSignalListener: (name, listener) => listeners.set(name, listener),
        removeSignalListener: (name) => listeners.delete(name),
      },
      log,
      timers,
    );
    log.take();
    listeners.get(signal)!();
    assertEquals(log.take(), []);
    timers.advance(500);
    const again = signal === "SIGINT" ? "press Ctrl-C" : "send SIGTERM";
    assertEquals(log.take(), [
      `info: ends when what runs is over; ${again} again to stop now`,
    ]);
    listeners.get(signal)!();
    await stopped;
    assertEquals(timers.pendingCount, 0);
  }
});
