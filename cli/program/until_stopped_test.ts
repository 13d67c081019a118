import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { RecordedErrors } from "../../tests/support/watch/recorded_errors.ts";
import { slip } from "../../tests/support/watch/recorded_faults.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import type { Running } from "../../net/program/program.ts";
import { untilStopped } from "./until_stopped.ts";

/** A program that runs until it is stopped, and signals to it. */
function running(
  more: Partial<Running> = {},
  ...rest: [log?: RecordedLog, timers?: FakeTimers]
) {
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
    ...more,
  }, {
    addSignalListener: (signal, listener) => listeners.set(signal, listener),
    removeSignalListener: (signal) => listeners.delete(signal),
  }, ...rest);
  const send = (signal: Deno.Signal) => listeners.get(signal)!();
  return { reported, listeners, stopped, send };
}

Deno.test("the first signal asks, the second one ends", async () => {
  const { reported, listeners, stopped, send } = running();
  send("SIGHUP");
  assertEquals(reported.splice(0), ["reload"]);
  send("SIGTERM");
  assertEquals(reported, ["shutdown"]);
  send("SIGINT");
  await stopped;
  assertEquals(reported, ["shutdown", "a second signal came"]);
  assertEquals(listeners.size, 0);
});

Deno.test("who cannot even begin to end is ended at once", async () => {
  using recorded = new RecordedErrors();
  const program = running({ shutdown: slip, reload: slip });
  program.send("SIGHUP");
  program.send("SIGTERM");
  await program.stopped;
  assertEquals(program.reported, ["it could not end in order"]);
  assertEquals(recorded.messages, ["a slip", "a slip"]);
});

Deno.test("who waits for the end is told how not to, and nobody else", async () => {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    const log = new RecordedLog();
    const timers = new FakeTimers();
    const { send, stopped } = running({}, log, timers);
    log.take();
    send(signal);
    assertEquals(log.take(), []);
    timers.advance(500);
    const again = signal === "SIGINT" ? "press Ctrl-C" : "send SIGTERM";
    assertEquals(log.take(), [
      `info: ends when what runs is over; ${again} again to stop now`,
    ]);
    send(signal);
    await stopped;
    assertEquals(timers.pendingCount, 0);
  }
});
