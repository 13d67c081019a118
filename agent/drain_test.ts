import { assertEquals } from "@std/assert";
import { FakeTimers } from "../tests/support/memory/fake_timers.ts";
import { AgentDrain, QUIET_MS, TOLD_MS } from "./drain.ts";

function setUp(load: number) {
  const timers = new FakeTimers();
  const state = { load, isLinked: true, areTold: true, did: [] as string[] };
  const drain = new AgentDrain({
    announce: () => void state.did.push("announce"),
    load: () => state.load,
    isLinked: () => state.isLinked,
    areTold: () => state.areTold,
    close: (reason) => Promise.resolve(void state.did.push(reason)),
  }, timers);
  return { timers, state, drain };
}

Deno.test("an idle agent announces its drain and leaves when that was read", async () => {
  const { timers, state, drain } = setUp(0);
  drain.begin(30_000);
  timers.advance(QUIET_MS - 1);
  assertEquals(state.did, ["announce"]);
  timers.advance(1);
  assertEquals(state.did, ["announce", "the agent has drained"]);
  await drain.finished;
  assertEquals(timers.pendingCount, 0);
});

Deno.test("an idle agent waits for servers that have not read that it goes, but for silent ones", () => {
  for (const isRead of [true, false]) {
    const { timers, state, drain } = setUp(0);
    state.areTold = false;
    drain.begin(30_000);
    timers.advance(TOLD_MS - 1);
    assertEquals(state.did, ["announce"]);
    state.areTold = isRead;
    timers.advance(isRead ? QUIET_MS : 1);
    assertEquals(state.did[1], "the agent has drained");
  }
});

Deno.test("what still comes while draining is served, and begins the wait again", () => {
  const { timers, state, drain } = setUp(0);
  drain.begin(30_000);
  timers.advance(QUIET_MS - 1);
  state.load = 1;
  drain.loadChanged();
  timers.advance(10_000);
  assertEquals(state.did, ["announce"]);
  state.load = 0;
  drain.loadChanged();
  timers.advance(QUIET_MS);
  assertEquals(state.did[1], "the agent has drained");
});

Deno.test("a busy agent leaves when its grace is over", () => {
  const { timers, state, drain } = setUp(1);
  drain.begin(30_000);
  timers.advance(30_000);
  assertEquals(state.did[1], "the agent stopped after 30 s of grace");
});

Deno.test("a second signal ends the agent at once", () => {
  const { timers, state, drain } = setUp(1);
  drain.begin(30_000);
  drain.now("second signal");
  drain.now("third signal");
  assertEquals([state.did, timers.pendingCount], [
    ["announce", "second signal"],
    0,
  ]);
});

Deno.test("an agent without a server waits for a successor alone", () => {
  const { timers, state, drain } = setUp(0);
  state.isLinked = false;
  drain.awaitSuccessor(1_500);
  drain.begin(30_000);
  timers.advance(1_499);
  assertEquals(state.did, ["announce"]);
  timers.advance(1);
  timers.advance(0);
  assertEquals([state.did[1], timers.pendingCount], [
    "the agent has drained",
    0,
  ]);
});

Deno.test("an agent does not end while a successor gets ready", () => {
  const { timers, state, drain } = setUp(0);
  drain.awaitSuccessor(1_500);
  drain.begin(30_000);
  drain.awaitSuccessor(60_000);
  timers.advance(20_000);
  assertEquals(state.did, ["announce"]);
  drain.awaitSuccessor(0);
  timers.advance(QUIET_MS);
  assertEquals(state.did[1], "the agent has drained");
});
