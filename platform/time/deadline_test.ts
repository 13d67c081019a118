import { assertEquals, assertRejects } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  atMost,
  type DeadlineOptions,
  orAborted,
  withDeadline,
  within,
} from "./deadline.ts";

class LateError extends Error {}
class LeftError extends Error {}

function limits(timers: FakeTimers, more: Partial<DeadlineOptions> = {}) {
  return {
    ...{ timers, timeoutMs: 1_000, late: () => new LateError("too late") },
    ...more,
  };
}

/** Work that ends when it is told to, and as its signal says. */
function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason));
  });
}

Deno.test("work that ends in time is what it is, and leaves no timer", async () => {
  const timers = new FakeTimers();
  const { signal } = new AbortController();
  const options = limits(timers, { signal });
  assertEquals(await withDeadline(options, () => Promise.resolve(7)), 7);
  await assertRejects(
    () => withDeadline(options, () => Promise.reject(new RangeError("no"))),
    RangeError,
  );
  assertEquals(timers.pendingCount, 0);
});

Deno.test("work is aborted when its time is up, with the words of its caller", async () => {
  const timers = new FakeTimers();
  const working = withDeadline(limits(timers), untilAborted);
  timers.advance(999);
  assertEquals(timers.pendingCount, 1);
  timers.advance(1);
  await assertRejects(() => working, LateError, "too late");
});

Deno.test("who gives up aborts the work, with a reason or with words of its own", async () => {
  const timers = new FakeTimers();
  const caller = new AbortController();
  const { signal } = caller;
  const plain = withDeadline(limits(timers, { signal }), untilAborted);
  const named = withDeadline(
    limits(timers, { signal, givenUp: () => new LeftError("left") }),
    untilAborted,
  );
  caller.abort(new RangeError("enough"));
  await assertRejects(() => plain, RangeError, "enough");
  await assertRejects(() => named, LeftError, "left");
  assertEquals(timers.pendingCount, 0);
  // Before it began is soon enough.
  await assertRejects(
    () => withDeadline(limits(timers, { signal }), untilAborted),
    RangeError,
  );
});

Deno.test("a controller of the caller's is aborted by the deadline, too", async () => {
  const timers = new FakeTimers();
  const controller = new AbortController();
  const working = withDeadline(limits(timers, { controller }), untilAborted);
  timers.advance(1_000);
  await assertRejects(() => working, LateError);
  assertEquals(controller.signal.reason instanceof LateError, true);
});

Deno.test("what cannot be given up is waited for as long as it is wanted", async () => {
  const caller = new AbortController();
  const { promise, resolve } = Promise.withResolvers<string>();
  const late: string[] = [];
  const waiting = orAborted(promise, caller.signal, (one) => late.push(one));
  assertEquals(
    await orAborted(Promise.resolve("soon"), caller.signal),
    "soon",
  );
  caller.abort(new LeftError("left"));
  await assertRejects(() => waiting, LeftError);
  // Nobody is there to take it, or to hear of a failure.
  resolve("late");
  await promise;
  assertEquals(late, ["late"]);
  await assertRejects(
    () => orAborted(Promise.reject(new RangeError("no")), caller.signal),
    LeftError,
  );
});

Deno.test("what goes on alone is waited for until its time is up", async () => {
  const timers = new FakeTimers();
  const { promise, resolve } = Promise.withResolvers<number>();
  const waiting = within(limits(timers), promise);
  timers.advance(1_000);
  await assertRejects(() => waiting, LateError);
  resolve(3);
  assertEquals(await within(limits(timers), promise), 3);
  assertEquals(timers.pendingCount, 0);
});

Deno.test("what does not end in time is left alone", async () => {
  const timers = new FakeTimers();
  const { promise, reject } = Promise.withResolvers<void>();
  const waiting = atMost(timers, 1_000, promise);
  timers.advance(1_000);
  await waiting;
  reject(new RangeError("too late to matter"));
  await atMost(timers, 1_000, Promise.resolve());
  await assertRejects(
    () => atMost(timers, 1_000, Promise.reject(new RangeError("in time"))),
    RangeError,
  );
  assertEquals(timers.pendingCount, 0);
});
