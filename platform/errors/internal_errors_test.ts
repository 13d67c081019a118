import { assertEquals } from "@std/assert";
import { RecordedErrors } from "../../tests/support/watch/recorded_errors.ts";
import { guarded, internalErrorCounts, unawaited } from "./internal_errors.ts";

const countOf = (where: string) =>
  [...internalErrorCounts()].find(([[label]]) => label === where)?.[1] ?? 0;

Deno.test("what throws is reported, and what it was about is ended", () => {
  using recorded = new RecordedErrors();
  const before = countOf("http");
  const ended: string[] = [];
  guarded("http", () => {
    throw new Error("a slip");
  }, () => ended.push("this"));
  guarded("http", () => {}, () => ended.push("not this"));
  assertEquals(recorded.errors, [{ where: "http", message: "a slip" }]);
  assertEquals(ended, ["this"]);
  assertEquals(countOf("http"), before + 1);
});

Deno.test("what cannot even be ended is reported twice, and no more", () => {
  using recorded = new RecordedErrors();
  guarded("task", () => {
    throw new Error("a slip");
  }, () => {
    throw new Error("half-made");
  });
  assertEquals(recorded.messages, ["a slip", "half-made"]);
});

Deno.test("a promise that nobody waits for is reported when it fails", async () => {
  using recorded = new RecordedErrors();
  const ended = Promise.withResolvers<void>();
  unawaited("file", Promise.reject(new Error("a slip")), ended.resolve);
  await ended.promise;
  assertEquals(recorded.errors, [{ where: "file", message: "a slip" }]);
});

Deno.test("what nobody listens for is an uncaught error", () => {
  const uncaught: unknown[] = [];
  const onError = (event: ErrorEvent) => {
    event.preventDefault();
    uncaught.push(event.error.message);
  };
  addEventListener("error", onError);
  guarded("callback", () => {
    throw new Error("a slip");
  });
  removeEventListener("error", onError);
  assertEquals(uncaught, ["a slip"]);
});
