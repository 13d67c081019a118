import { assertEquals } from "@std/assert";
import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import { LinkError, LinkRefusedError } from "../../proto/link/hello.ts";
import { FakeTimers } from "../../tests/support/fake_timers.ts";
import { RecordedLog } from "../../tests/support/recorded_log.ts";
import { AttemptLog, QUIET_MS } from "./attempt_log.ts";

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

Deno.test("what has not changed is said ever more seldom, of each address", () => {
  const log = new RecordedLog();
  const timers = new FakeTimers();
  const attempts = new AttemptLog(log, timers);
  const away = new LinkError("away");
  for (let tick = 0; tick < 600; tick++) {
    for (const address of ["a:1", "b:1"]) {
      attempts.failed(`${address} is away`, 100, away, address);
    }
    timers.advance(100);
  }
  const lines = log.take().filter((line) => line.includes("a:1"));
  // At 0, 5, 15 and 35 s.
  assertEquals(lines.length, 4);
  attempts.failed("a:1 is too old", 100, away, "a:1");
  attempts.linked("a:1");
  attempts.failed("a:1 is too old", 100, away, "a:1");
  assertEquals(log.take().length, 2);
  assertEquals(QUIET_MS.first, 5_000);
});
