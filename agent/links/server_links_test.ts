import { assertEquals } from "@std/assert";
import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import { LinkError, LinkRefusedError } from "../../proto/link/hello.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import { AttemptLog, OUTAGE_MS } from "./server_links.ts";

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
