import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  IDLE_CHECK_MS,
  UNAUTHENTICATED_LIFE_MS,
  watchIdle,
} from "./metered_stream.ts";

/** A connection with so many calls, and what became of it. */
function scene(openStreams: number, isUnauthenticated = true) {
  const timers = new FakeTimers();
  const connection = {
    openStreams,
    ends: [] as string[],
    abort(code: number, reason: string) {
      this.ends.push(`${code} ${reason}`);
    },
  };
  const peer = { isUnauthenticated };
  const stop = watchIdle(connection, {
    timers,
    isUnauthenticated: () => peer.isUnauthenticated,
    ended: () => {},
  });
  return { timers, connection, peer, stop };
}

Deno.test("without a call a connection ends within ten seconds", () => {
  const { timers, connection } = scene(0);
  timers.advance(2 * IDLE_CHECK_MS - 1);
  assertEquals(connection.ends, []);
  timers.advance(1);
  assertEquals(connection.ends, ["0 no call was open for 5 s"]);
});

Deno.test("a call that comes and goes keeps it a while longer", () => {
  const { timers, connection } = scene(0);
  timers.advance(IDLE_CHECK_MS);
  connection.openStreams = 1;
  timers.advance(IDLE_CHECK_MS);
  connection.openStreams = 0;
  timers.advance(IDLE_CHECK_MS);
  assertEquals(connection.ends, []);
  timers.advance(IDLE_CHECK_MS);
  assertEquals(connection.ends.length, 1);
});

Deno.test("an unauthenticated peer with a call that never ends ends all the same, an agent does not", () => {
  const unknown = scene(1);
  const agent = scene(1, false);
  for (const { timers } of [unknown, agent]) {
    timers.advance(UNAUTHENTICATED_LIFE_MS);
  }
  assertEquals(unknown.connection.ends, [
    "0 it did not show who it is for 30 s",
  ]);
  agent.timers.advance(10 * UNAUTHENTICATED_LIFE_MS);
  assertEquals(agent.connection.ends, []);
});

Deno.test("a watch that is stopped leaves no timer behind", () => {
  const { timers, connection, stop } = scene(0);
  stop();
  timers.advance(UNAUTHENTICATED_LIFE_MS);
  assertEquals(connection.ends, []);
});
