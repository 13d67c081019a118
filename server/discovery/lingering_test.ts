import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { LINGER_MS, Lingering, LINGERING_MAX } from "./lingering.ts";

Deno.test("what is gone is known for a while, however late it went", () => {
  const timers = new FakeTimers();
  const gone = new Lingering<number>(timers);
  gone.add("early", 1);
  timers.advance(LINGER_MS - 1);
  gone.add("late", 2);
  timers.advance(LINGER_MS - 1);
  assertEquals(gone.get("late"), 2);
  timers.advance(LINGER_MS + 1);
  assertEquals([gone.get("early"), gone.get("late")], [undefined, undefined]);
});

Deno.test("after a long silence nothing is known any more", () => {
  const timers = new FakeTimers();
  const gone = new Lingering<number>(timers);
  gone.add("one", 1);
  timers.advance(2 * LINGER_MS);
  assertEquals(gone.get("one"), undefined);
});

Deno.test("only so much is remembered, and the latest of it", () => {
  const gone = new Lingering<number>(new FakeTimers());
  for (let at = 0; at <= 2 * LINGERING_MAX; at++) gone.add(`${at}`, at);
  assertEquals(gone.get("0"), undefined);
  assertEquals(gone.get(`${2 * LINGERING_MAX}`), 2 * LINGERING_MAX);
});
