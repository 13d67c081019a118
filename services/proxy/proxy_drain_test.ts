import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import { LAST_MS, ProxyDrain } from "./proxy_drain.ts";

class Rig {
  readonly timers = new FakeTimers();
  readonly log = new RecordedLog();
  readonly done: string[] = [];
  connections = 0;
  sessions = 0;
  readonly lastMs: number[] = [];
  readonly drain: ProxyDrain;

  constructor() {
    const load = () => ({
      connections: this.connections,
      sessions: this.sessions,
    });
    this.drain = new ProxyDrain({
      get load() {
        return load();
      },
      retire: () => void this.done.push("retire"),
      close: (reason, lastMs) => {
        this.done.push(reason);
        this.lastMs.push(lastMs);
        return Promise.resolve();
      },
    }, this);
  }
}

Deno.test("asked to end, it serves until nothing runs, and then closes", async () => {
  const rig = new Rig();
  rig.connections = 1;
  rig.drain.begin("SIGTERM", 30_000);
  assertEquals(!rig.drain.isRunning, true);
  assertEquals(
    rig.log.lines.map(({ message }) => message),
    ["SIGTERM: draining, 1 connection, at most 30 s; new callers are served"],
  );
  rig.drain.loadChanged();
  rig.timers.advance(1);
  assertEquals(rig.done, []);
  rig.connections = 0;
  rig.drain.loadChanged();
  rig.timers.advance(1);
  await rig.drain.finished;
  assertEquals(rig.done, ["nothing runs any more"]);
  assertEquals(rig.timers.pendingCount, 0);
});

Deno.test("sessions are waited for only when no more datagrams come", async () => {
  const rig = new Rig();
  rig.sessions = 1;
  rig.drain.handedOver(7, 30_000);
  rig.drain.loadChanged();
  rig.timers.advance(1);
  assertEquals(rig.done, ["retire"]);
  rig.sessions = 0;
  rig.drain.loadChanged();
  rig.timers.advance(1);
  await rig.drain.finished;
  const idle = new Rig();
  idle.sessions = 525;
  idle.drain.begin("SIGTERM", 30_000);
  await idle.drain.finished;
  assertEquals(
    idle.log.lines.at(-1)!.message,
    "ended: no connection is open; 525 UDP sessions cut off",
  );
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
  // Who has come last is cut off at once, and nothing else happens.
  assertEquals(rig.done, ["retire", "the drain took 30 s", "again"]);
  assertEquals(rig.lastMs, [LAST_MS, 0]);
});

Deno.test("an idle proxy waits for a successor, and for one that gets ready", () => {
  const alone = new Rig();
  alone.drain.awaitSuccessor(1_500);
  alone.drain.begin("SIGTERM", 30_000);
  alone.timers.advance(1_499);
  assertEquals(alone.done, []);
  alone.timers.advance(1);
  // Who was queued at the ports has the rest of the time.
  assertEquals(alone.done, ["nothing runs any more"]);
  assertEquals(alone.lastMs, [28_500]);
  const followed = new Rig();
  followed.drain.awaitSuccessor(1_500);
  followed.drain.begin("SIGTERM", 30_000);
  followed.timers.advance(1_000);
  followed.drain.awaitSuccessor(60_000);
  followed.timers.advance(20_000);
  assertEquals(followed.done, []);
  followed.drain.handedOver(7, 30_000);
  assertEquals(followed.done, ["retire", "nothing runs any more"]);
  assertEquals(followed.timers.pendingCount, 0);
  const failed = new Rig();
  failed.drain.awaitSuccessor(1_500);
  failed.drain.begin("SIGTERM", 30_000);
  failed.drain.awaitSuccessor(0);
  failed.timers.advance(1);
  assertEquals(failed.done, ["nothing runs any more"]);
  const urged = new Rig();
  urged.drain.awaitSuccessor(1_500);
  urged.drain.begin("SIGTERM", 30_000);
  urged.drain.now("a second signal came");
  assertEquals([urged.done, urged.timers.pendingCount], [
    ["a second signal came"],
    0,
  ]);
});
