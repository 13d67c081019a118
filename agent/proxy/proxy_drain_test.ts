import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import { LOOK_MS, ProxyDrain } from "./proxy_drain.ts";

class Rig {
  readonly timers = new FakeTimers();
  readonly log = new RecordedLog();
  readonly done: string[] = [];
  connections = 0;
  sessions = 0;
  readonly drain = new ProxyDrain({
    load: (isLeaving) => this.connections + (isLeaving ? this.sessions : 0),
    retire: () => void this.done.push("retire"),
    close: (reason) => {
      this.done.push(reason);
      return Promise.resolve();
    },
  }, this);
}

Deno.test("asked to end, it serves until nothing runs, and then closes", async () => {
  const rig = new Rig();
  rig.connections = 1;
  rig.drain.begin("SIGTERM", 30_000);
  assertEquals(rig.drain.isDraining, true);
  assertEquals(
    rig.log.lines.map(({ message }) => message),
    ["SIGTERM: draining, 1 connection, at most 30 s; who comes is served"],
  );
  rig.timers.advance(LOOK_MS);
  assertEquals(rig.done, []);
  rig.connections = 0;
  rig.timers.advance(LOOK_MS);
  await rig.drain.finished;
  assertEquals(rig.done, ["nothing runs any more"]);
  assertEquals(rig.timers.pendingCount, 0);
});

Deno.test("sessions are waited for only when no more datagrams come", async () => {
  const rig = new Rig();
  rig.sessions = 1;
  rig.drain.handedOver(7, 30_000);
  rig.timers.advance(LOOK_MS);
  assertEquals(rig.done, ["retire"]);
  rig.sessions = 0;
  rig.timers.advance(LOOK_MS);
  await rig.drain.finished;
  const idle = new Rig();
  idle.sessions = 1;
  idle.drain.begin("SIGTERM", 30_000);
  await idle.drain.finished;
});

Deno.test("what still runs when time is over is cut off, and counted", async () => {
  const rig = new Rig();
  rig.connections = 2;
  rig.drain.begin("SIGTERM", 30_000);
  rig.timers.advance(10_000);
  // The time is the one that was told at first.
  rig.drain.handedOver(7, 30_000);
  rig.timers.advance(20_000);
  await rig.drain.finished;
  assertEquals(
    rig.log.lines.at(-1)!.message,
    "ended: the drain took 30 s; 2 connections cut off",
  );
  rig.drain.begin("SIGTERM", 30_000);
  rig.drain.now("again");
  assertEquals(rig.done, ["retire", "the drain took 30 s"]);
});
