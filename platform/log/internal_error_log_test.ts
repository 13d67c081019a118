import { assert, assertEquals, assertMatch } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import {
  registerInternalErrors,
  surviveInternalErrors,
} from "./internal_error_log.ts";
import { REPEATS_GATHER_MS } from "./repeated_lines.ts";
import { reportInternalError } from "../errors/internal_errors.ts";
import { MetricRegistry } from "../metrics/metrics.ts";

/** From one place, so with one stack. */
const slip = (message: string) => new TypeError(message);

Deno.test("an error is logged once with its stack and where it was caught, then counted", () => {
  const [log, timers] = [new RecordedLog(), new FakeTimers()];
  using _net = surviveInternalErrors(log, timers);
  // What stands in the message may differ from peer to peer.
  for (let peer = 0; peer < 38; peer++) {
    reportInternalError("stream", slip(`no ${peer}`));
  }
  reportInternalError("timer", slip("no 0"));
  assertEquals(log.lines.map(({ fields }) => fields["where"]), [
    "stream",
    "timer",
  ]);
  assertMatch(
    String(log.lines[0]?.fields["stack"]),
    /^at slip \(.*internal_error_log_test\.ts:[^\n]*\) at /,
  );
  assertEquals(log.take(), [
    "error: internal error, please report it: TypeError: no 0",
    "error: internal error, please report it: TypeError: no 0",
  ]);
  timers.advance(REPEATS_GATHER_MS[0]!);
  const [line, ...others] = log.take();
  assertMatch(line!, /report it: TypeError: no 37 \(same, 37 more until /);
  assertEquals(others, []);
});

Deno.test("what is no error, or a long one, is one line all the same", () => {
  const log = new RecordedLog();
  using _net = surviveInternalErrors(log, new FakeTimers());
  const unprintable = Object.create(null);
  for (const thrown of [null, undefined, "a text", unprintable]) {
    reportInternalError("task", thrown);
  }
  reportInternalError("task", slip("x".repeat(100_000)));
  assertEquals(log.lines.length, 5);
  assert(log.lines.every(({ message }) => message.length < 400));
  assert(log.lines.every(({ fields }) => String(fields["stack"]).length < 5e3));
});

Deno.test("a program that survives goes on after what nobody caught", async () => {
  const log = new RecordedLog();
  using _net = surviveInternalErrors(log, new FakeTimers());
  setTimeout(() => {
    throw new Error("thrown by a callback");
  });
  Promise.reject(new Error("thrown by nobody's promise"));
  await Promise.all([
    log.until(/thrown by a callback/),
    log.until(/thrown by nobody's promise/),
  ]);
  assertEquals(log.lines.map(({ fields }) => fields["where"]), [
    "unguarded",
    "unguarded",
  ]);
});

Deno.test("errors are counted by where they were caught", () => {
  const registry = new MetricRegistry();
  registerInternalErrors(registry, "tunnel_server");
  using _net = surviveInternalErrors(new RecordedLog(), new FakeTimers());
  reportInternalError("identity", slip("no"));
  assertMatch(
    registry.expose(),
    /^tunnel_server_internal_errors_total\{where="identity"\} 1$/m,
  );
});
