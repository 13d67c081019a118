import { assert, assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  ALL_ATTEMPTS_BURST,
  ATTEMPT_SOURCES_MAX,
  ATTEMPTS_BURST,
  CHALLENGE_VALID_MS,
  Challenges,
  JoinAttempts,
  REFUSED_ATTEMPT_COST,
} from "./attempts.ts";

Deno.test("a source may do much at once, and then as much as time brings", () => {
  const timers = new FakeTimers();
  const attempts = new JoinAttempts(timers);
  for (let index = 0; index < ATTEMPTS_BURST; index++) {
    assertEquals(attempts.begin("10.0.0.1:1"), 0);
  }
  const waitMs = attempts.begin("10.0.0.1:2");
  assert(waitMs > 0);
  assertEquals(attempts.begin("10.0.0.2:1"), 0, "others do not wait");
  timers.advance(waitMs);
  assertEquals(attempts.begin("10.0.0.1:3"), 0);
  assert(attempts.begin("10.0.0.1:4") > 0);
});

Deno.test("a source that is refused waits sooner", () => {
  const attempts = new JoinAttempts(new FakeTimers());
  let tries = 0;
  while (attempts.begin("10.0.0.1:1") === 0) {
    attempts.refused("10.0.0.1:1");
    tries++;
  }
  assertEquals(tries, ATTEMPTS_BURST / REFUSED_ATTEMPT_COST);
});

Deno.test("sources are bounded, and all together too", () => {
  const timers = new FakeTimers();
  const attempts = new JoinAttempts(timers);
  let granted = 0;
  for (let index = 0; index < ATTEMPT_SOURCES_MAX * 2; index++) {
    const source = `10.${index >> 8 & 255}.${index & 255}.1:1`;
    if (attempts.begin(source) === 0) granted++;
  }
  assertEquals(attempts.sources, ATTEMPT_SOURCES_MAX);
  assertEquals(granted, ALL_ATTEMPTS_BURST);
});

Deno.test("a nonce is good for one address and a while", () => {
  const timers = new FakeTimers();
  const challenges = new Challenges(timers);
  const nonce = challenges.make("10.0.0.1:1");
  assert(challenges.isGood(nonce, "10.0.0.1:2"), "another port is the same");
  assertEquals(challenges.isGood(nonce, "10.0.0.2:1"), false);
  timers.advance(CHALLENGE_VALID_MS - 1);
  assert(challenges.isGood(nonce, "10.0.0.1:1"));
  timers.advance(1);
  assertEquals(challenges.isGood(nonce, "10.0.0.1:1"), false);
});

Deno.test("a nonce cannot be made by others", () => {
  const timers = new FakeTimers();
  const challenges = new Challenges(timers);
  const nonce = challenges.make("10.0.0.1:1");
  const other = new Challenges(timers).make("10.0.0.1:1");
  assertEquals(challenges.isGood(other, "10.0.0.1:1"), false);
  for (const at of [0, 7, 8, 39]) {
    const changed = nonce.slice();
    changed[at]! ^= 1;
    assertEquals(challenges.isGood(changed, "10.0.0.1:1"), false, `${at}`);
  }
  for (const part of [nonce.slice(1), new Uint8Array(0), new Uint8Array(1e5)]) {
    assertEquals(challenges.isGood(part, "10.0.0.1:1"), false);
  }
});
