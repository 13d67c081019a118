import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { LAST_REQUESTS_MS, PASSED_ARRIVAL_MS, Shutdown } from "./shutdown.ts";

function setUp(load: number) {
  const timers = new FakeTimers();
  const did: string[] = [];
  const state = { load, isKept: false, isCalled: false, did };
  const shutdown = new Shutdown({
    announce: () => void state.did.push("tell"),
    load: () => state.load,
    letGo: () => state.isKept,
    refuse: () => state.isCalled,
    refuseDials: () => {
      if (state.isCalled) state.did.push("refuse dials");
      return state.isCalled;
    },
    closeAll: (reason) => {
      state.did.push(`close: ${reason}`);
      return Promise.resolve();
    },
  }, timers);
  return { timers, state, shutdown };
}

Deno.test("an idle server ends at once", async () => {
  const { state, shutdown } = setUp(0);
  shutdown.begin(30_000);
  assertEquals(state.did, ["tell", "close: the server is stopping"]);
  await shutdown.finished;
});

Deno.test("a busy server notifies callers and waits for what runs", async () => {
  const { state, shutdown, timers } = setUp(2);
  shutdown.begin(30_000);
  assertEquals([state.did, shutdown.isRunning], [["tell"], false]);
  state.load = 0;
  shutdown.loadChanged();
  await shutdown.finished;
  assertEquals([state.did.length, timers.pendingCount], [2, 0]);
});

Deno.test("a server that stays busy ends when its grace is over", () => {
  const { state, shutdown, timers } = setUp(1);
  shutdown.begin(30_000);
  timers.advance(29_999);
  assertEquals(state.did, ["tell"]);
  timers.advance(1);
  assertEquals(state.did[1], "close: the server stopped after 30 s of grace");
});

Deno.test("without grace nothing is waited for (upstream's default)", () => {
  const { state, shutdown } = setUp(5);
  shutdown.begin(0);
  assertEquals(state.did.length, 2);
});

Deno.test("a second signal ends the wait, a third does nothing", () => {
  const { state, shutdown } = setUp(5);
  shutdown.begin(30_000);
  shutdown.now("second signal");
  shutdown.now("third signal");
  shutdown.begin(1);
  assertEquals(state.did, ["tell", "close: second signal"]);
});

Deno.test("a client that came before the ports went may still send its request", async () => {
  const { state, shutdown, timers } = setUp(0);
  shutdown.handedOver(30_000);
  timers.advance(PASSED_ARRIVAL_MS - 1);
  shutdown.loadChanged();
  assertEquals(state.did, ["tell"]);
  state.load = 1;
  timers.advance(1);
  state.load = 0;
  shutdown.loadChanged();
  await shutdown.finished;
  assertEquals(state.did, ["tell", "close: the server is stopping"]);
});

Deno.test("callers that came while it drained are sent elsewhere, too", () => {
  const { state, shutdown, timers } = setUp(1);
  shutdown.begin(30_000);
  timers.advance(20_000);
  shutdown.handedOver(30_000);
  assertEquals(state.did, ["tell", "tell"]);
  timers.advance(10_000);
  assertEquals(state.did[2], "close: the server stopped after 30 s of grace");
});

Deno.test("where sockets are kept, clients that came are served before the end", async () => {
  const { state, shutdown, timers } = setUp(0);
  state.isKept = true;
  shutdown.begin(30_000);
  assertEquals(state.did, ["tell"]);
  timers.advance(PASSED_ARRIVAL_MS);
  await shutdown.finished;
  const busy = setUp(1);
  busy.state.isKept = true;
  busy.shutdown.begin(30_000);
  busy.timers.advance(30_000);
  assertEquals(busy.state.did, ["tell"]);
  busy.timers.advance(PASSED_ARRIVAL_MS);
  assertEquals(busy.state.did.length, 2);
});

Deno.test("what callers sent before they heard of the end is served", async () => {
  const { state, shutdown, timers } = setUp(0);
  state.isCalled = true;
  shutdown.begin(30_000);
  timers.advance(LAST_REQUESTS_MS - 1);
  assertEquals(state.did, ["tell"]);
  state.load = 1;
  timers.advance(1);
  assertEquals(state.did, ["tell"]);
  state.load = 0;
  shutdown.loadChanged();
  // A dial that is on its way is refused in words, and not cut off.
  assertEquals(state.did, ["tell", "refuse dials"]);
  timers.advance(LAST_REQUESTS_MS);
  await shutdown.finished;
  assertEquals(state.did[2], "close: the server is stopping");
});

Deno.test("what was dialed just before its grace is over has a moment yet", () => {
  const { state, shutdown, timers } = setUp(1);
  state.isCalled = true;
  shutdown.begin(25_000);
  timers.advance(25_000);
  assertEquals(state.did, ["tell", "refuse dials"]);
  shutdown.loadChanged();
  timers.advance(LAST_REQUESTS_MS - 1);
  assertEquals(state.did.length, 2);
  timers.advance(1);
  assertEquals(state.did[2], "close: the server stopped after 25 s of grace");
  const urged = setUp(1);
  urged.state.isCalled = true;
  urged.shutdown.begin(25_000);
  urged.timers.advance(25_000);
  urged.shutdown.now("a second signal came");
  assertEquals([urged.state.did[2], urged.timers.pendingCount], [
    "close: a second signal came",
    0,
  ]);
});

Deno.test("an idle server waits for a successor, and for one that gets ready", () => {
  const alone = setUp(0);
  alone.shutdown.awaitSuccessor(1_500);
  alone.shutdown.begin(30_000);
  alone.timers.advance(1_499);
  assertEquals(alone.state.did, ["tell"]);
  alone.timers.advance(1);
  assertEquals(alone.state.did[1], "close: the server is stopping");
  const followed = setUp(0);
  followed.shutdown.awaitSuccessor(1_500);
  followed.shutdown.begin(30_000);
  followed.shutdown.awaitSuccessor(60_000);
  followed.timers.advance(20_000);
  followed.shutdown.handedOver(30_000);
  followed.timers.advance(PASSED_ARRIVAL_MS);
  assertEquals(followed.state.did, [
    "tell",
    "tell",
    "close: the server is stopping",
  ]);
  assertEquals(followed.timers.pendingCount, 0);
});
