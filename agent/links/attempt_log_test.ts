import { assertEquals } from "@std/assert";
import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import { LinkError, LinkRefusedError } from "../../proto/link/hello.ts";
import { RecordedLog } from "../../tests/support/recorded_log.ts";
import { AttemptLog } from "./attempt_log.ts";

Deno.test("a refusal is a warning, once for each reason", () => {
  const log = new RecordedLog();
  const attempts = new AttemptLog(log);
  const fail = (error: Error) => attempts.failed(error.message, 100, error);
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
  attempts.linked();
  fail(new GrpcError(StatusCode.PERMISSION_DENIED, "forgotten"));
  assertEquals(levels(), ["warn: forgotten", "warn: forgotten"]);
});
