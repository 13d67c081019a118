import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  RECENTLY_REMOVED_MAX,
  RECENTLY_REMOVED_MS,
  RecentlyRemoved,
} from "./recently_removed.ts";

Deno.test("what is gone is known for a while, however late it went", () => {
  const timers = new FakeTimers();
  const gone = new RecentlyRemoved<number>(timers);
  gone.add("early", 1);
  timers.advance(RECENTLY_REMOVED_MS - 1);
  gone.add("late", 2);
  timers.advance(RECENTLY_REMOVED_MS - 1);
  assertEquals(gone.get("late"), 2);
  timers.advance(RECENTLY_REMOVED_MS + 1);
  assertEquals([gone.get("early"), gone.get("late")], [undefined, undefined]);
});

Deno.test("after a long silence nothing is known any more", () => {
  const timers = new FakeTimers();
  const gone = new RecentlyRemoved<number>(timers);
  gone.add("one", 1);
  timers.advance(2 * RECENTLY_REMOVED_MS);
  assertEquals(gone.get("one"), undefined);
});

Deno.test("only so much is remembered, and the latest of it", () => {
  const gone = new RecentlyRemoved<number>(new FakeTimers());
  for (let at = 0; at <= 2 * RECENTLY_REMOVED_MAX; at++) gone.add(`${at}`, at);
  assertEquals(gone.get("0"), undefined);
  assertEquals(
    gone.get(`${2 * RECENTLY_REMOVED_MAX}`),
    2 * RECENTLY_REMOVED_MAX,
  );
});
