import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { BURST, PAUSE_MS, QuestionPace } from "./question_pace.ts";

Deno.test("questions that come all at once are sent in turns, in their order", () => {
  const timers = new FakeTimers();
  const pace = new QuestionPace(timers);
  const sent: number[] = [];
  const count = 2 * BURST + 1;
  for (let index = 0; index < count; index++) {
    pace.run(() => sent.push(index));
  }
  assertEquals(sent.length, BURST);
  timers.advance(PAUSE_MS);
  assertEquals(sent.length, 2 * BURST);
  timers.advance(PAUSE_MS);
  assertEquals(sent, Array.from({ length: count }, (_, index) => index));
  timers.advance(PAUSE_MS);
  assertEquals(timers.pendingCount, 0);
});
