import { assertEquals } from "@std/assert";
import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import { LinkError, LinkRefusedError } from "../../proto/link/hello.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import { AttemptLog, OUTAGE_MS } from "./server_links.ts";
import { CHANGES, MACHINE_GATHER_MS, MachineWatch } from "./machine_watch.ts";

Deno.test("a refusal is a warning, once for each reason", () => {
  const log = new RecordedLog();
  const attempts = new AttemptLog(log, new FakeTimers());
  const fail = (error: Error) =>
    attempts.failed(error.message, 100, error, "a:1");
  const levels = () => log.take().map((line) => line.split(";")[0]);
  const revoked = new LinkRefusedError("revoked");
  fail(new LinkError("away"));
  fail(revoked);
  fail(new LinkError("away"));
  fail(revoked);
  assertEquals(levels(), [
    "event: away",
    "warn: revoked",
    "event: away",
    "event: revoked",
  ]);
  fail(new GrpcError(StatusCode.PERMISSION_DENIED, "forgotten"));
  attempts.linked("a:1");
  fail(new GrpcError(StatusCode.PERMISSION_DENIED, "forgotten"));
  assertEquals(levels(), ["warn: forgotten", "warn: forgotten"]);
});

Deno.test("what has not changed is one matter, of each address, until a link comes", () => {
  const keys: (string | undefined)[] = [];
  const log = new RecordedLog();
  log.event = (_message, _fields, key?: string) => void keys.push(key);
  const attempts = new AttemptLog(log, new FakeTimers());
  const away = new LinkError("away");
  for (const retryMs of [100, 200]) {
    attempts.failed("away", retryMs, away, "a:1");
    attempts.failed("away", retryMs, away, "b:1");
  }
  attempts.failed("too old", 100, away, "a:1");
  attempts.linked("a:1");
  attempts.failed("away", 100, away, "a:1");
  assertEquals(keys, [
    "link 0 a:1 away",
    "link 0 b:1 away",
    "link 0 a:1 away",
    "link 0 b:1 away",
    "link 0 a:1 too old",
    "link 1 a:1 away",
  ]);
});

Deno.test("that no server can be reached for a while is a warning, and that one can again", () => {
  const log = new RecordedLog();
  const timers = new FakeTimers();
  const attempts = new AttemptLog(log, timers);
  const fail = () => attempts.failed("away", 100, new LinkError("away"), "a:1");
  for (const lapMs of [0, OUTAGE_MS - 1, 1, 5_000]) {
    timers.advance(lapMs);
    fail();
  }
  attempts.counted(1);
  // It was linked all the time, with others.
  timers.advance(2 * OUTAGE_MS);
  fail();
  attempts.counted(0);
  attempts.counted(1);
  const line = "away; trying again in 100 ms";
  assertEquals(log.take(), [
    `event: ${line}`,
    `event: ${line}`,
    `warn: no server is linked for 10 s: ${line}`,
    `warn: no server is linked for 15 s: ${line}`,
    "warn: a server is linked again, after 15 s",
    `event: ${line}`,
  ]);
});

/** A machine whose network and clocks a test has in its hands. */
class Machine implements Disposable {
  readonly timers = new FakeTimers();
  readonly told: string[] = [];
  wallMs = 1_000_000;
  change: () => void = () => {};
  isHeard = true;
  readonly watch = new MachineWatch({
    timers: this.timers,
    wallClock: () => this.wallMs,
    changed: (why) => this.told.push(why),
    listen: (onChange) => {
      this.change = onChange;
      return { close: () => void (this.isHeard = false) };
    },
  });

  /** Both clocks go on, in steps as a process that runs has them. */
  run(ms: number): void {
    for (let left = ms; left > 0; left -= 100) {
      this.wallMs += 100;
      this.timers.advance(100);
    }
  }

  [Symbol.dispose](): void {
    this.watch.stop();
    assertEquals([this.timers.pendingCount, this.isHeard], [0, false]);
  }
}

Deno.test("changes of the network are gathered, and many count only so often", () => {
  using machine = new Machine();
  for (let count = 0; count < 5; count++) machine.change();
  machine.run(MACHINE_GATHER_MS);
  assertEquals(machine.told, ["the network has changed"]);
  for (let count = 0; count < 1_000; count++) {
    machine.change();
    machine.run(MACHINE_GATHER_MS);
  }
  const most = CHANGES.burst +
    1_000 * MACHINE_GATHER_MS / 1_000 * CHANGES.perSecond;
  assertEquals(machine.told.length <= most + 1, true, `${machine.told.length}`);
});

Deno.test("a machine that slept is noticed by its wall clock", () => {
  using machine = new Machine();
  machine.run(5_000);
  assertEquals(machine.told, []);
  machine.wallMs += 3_600_000;
  machine.run(500);
  assertEquals(machine.told.length, 1);
  // People may set it back: nothing has happened to links.
  machine.wallMs -= 3_600_000;
  machine.run(5_000);
  assertEquals(machine.told.length, 1);
});
