import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  CROWD_PER_SECOND,
  RepeatedLines,
  REPEATS_GATHER_MS,
  REPEATS_KEYS_MAX,
  TEXTS_MAX,
} from "./repeated_lines.ts";

/** Lines that were written, and what makes them. */
function rig() {
  const timers = new FakeTimers();
  const lines: string[] = [];
  const repeated = new RepeatedLines(timers, () => 0);
  const say = (key: string, text = key) =>
    repeated.add(key, key, (note) => lines.push(text + note));
  const tell = (text: string) =>
    repeated.add("subject", text, (note) => lines.push(text + note));
  const take = () => lines.splice(0);
  return { timers, repeated, say, tell, take };
}

const UNTIL = "until 1970-01-01T00:00:00.000Z";

Deno.test("the first line is written at once, the last with a count", () => {
  const { timers, say, take } = rig();
  for (const text of ["one", "two", "three"]) say("key", text);
  assertEquals(take(), ["one"]);
  timers.advance(REPEATS_GATHER_MS[0]!);
  assertEquals(take(), [`three (same, 2 more ${UNTIL})`]);
});

Deno.test("only the same text is withheld, and the last line tells how it is", () => {
  const { timers, tell, take } = rig();
  for (const text of ["bad port", "bad port", "well again", "bad weight"]) {
    tell(text);
  }
  tell("bad port");
  assertEquals(take(), [
    "bad port",
    `bad port (same, 1 more ${UNTIL})`,
    "well again",
    "bad weight",
    "bad port",
  ]);
  timers.advance(REPEATS_GATHER_MS[0]!);
  assertEquals([take(), timers.pendingCount], [[], 0]);
});

Deno.test("ever other texts of one subject are few lines", () => {
  const { timers, tell, take } = rig();
  for (let i = 0; i <= 1_000; i++) tell(`text ${i}`);
  assertEquals(take().length, 1 + TEXTS_MAX);
  timers.advance(REPEATS_GATHER_MS[0]!);
  assertEquals(take(), [
    `text 1000 (others, ${1_000 - TEXTS_MAX} more ${UNTIL})`,
  ]);
  tell("text 1001");
  assertEquals(take(), ["text 1001"]);
});

Deno.test("the longer it goes on, the rarer it is logged", () => {
  const { timers, say, take } = rig();
  let reported = 0;
  for (let second = 0; second < 3600; second++) {
    say("key");
    timers.advance(1_000);
    reported += take().length;
  }
  // At once, after 10 s, 70 s, and then every ten minutes.
  assertEquals(reported, 3 + 5);
});

Deno.test("after a quiet while a line is news again", () => {
  const { timers, say, take } = rig();
  say("key");
  say("key");
  timers.advance(REPEATS_GATHER_MS[0]!);
  take();
  timers.advance(REPEATS_GATHER_MS[1]!);
  say("key");
  assertEquals(take(), ["key"]);
  assertEquals(timers.pendingCount, 0);
});

Deno.test("flush logs what is held, once", () => {
  const { timers, repeated, say, take } = rig();
  for (const key of ["a", "a", "b"]) say(key);
  take();
  repeated.flush();
  repeated.flush();
  assertEquals(take(), [`a (same, 1 more ${UNTIL})`]);
  assertEquals(timers.pendingCount, 0);
});

Deno.test("however many keys there are, few are remembered and few lines written", () => {
  const { timers, repeated, say, take } = rig();
  const keys = 10 * REPEATS_KEYS_MAX;
  for (let i = 0; i < keys; i++) {
    say(`key ${i}`);
    assertEquals(timers.pendingCount <= REPEATS_KEYS_MAX, true);
  }
  // The first of the crowd is written, and how many others there were.
  const own = REPEATS_KEYS_MAX + CROWD_PER_SECOND;
  assertEquals(take().length, own + 1);
  repeated.flush();
  assertEquals(take(), [
    `key ${keys - 1} (others, ${keys - own - 1} more ${UNTIL})`,
  ]);
});

Deno.test("in a crowd of new keys some are logged each second", () => {
  const { timers, say, take } = rig();
  for (let i = 0; i < REPEATS_KEYS_MAX; i++) say(`key ${i}`);
  take();
  for (let second = 0; second < 5; second++) {
    for (let i = 0; i < 1_000; i++) say(`flood ${second} ${i}`);
    timers.advance(1_000);
  }
  assertEquals(take().length, 5 * CROWD_PER_SECOND + 1);
});
