import { assertEquals } from "@std/assert";
import { HeardErrors } from "../../tests/support/watch/heard_errors.ts";
import { guarded, internalErrorCounts, unawaited } from "./internal_errors.ts";

const countOf = (where: string) =>
  [...internalErrorCounts()].find(([[label]]) => label === where)?.[1] ?? 0;

Deno.test("what throws is reported, and what it was about is ended", () => {
  using heard = new HeardErrors();
  const before = countOf("http");
  const ended: string[] = [];
  guarded("http", () => {
    throw new Error("a slip");
  }, () => ended.push("this"));
  guarded("http", () => {}, () => ended.push("not this"));
  assertEquals(heard.errors, [{ where: "http", message: "a slip" }]);
  assertEquals(ended, ["this"]);
  assertEquals(countOf("http"), before + 1);
});

Deno.test("what cannot even be ended is reported twice, and no more", () => {
  using heard = new HeardErrors();
  guarded("task", () => {
    throw new Error("a slip");
  }, () => {
    throw new Error("half-made");
  });
  assertEquals(heard.messages, ["a slip", "half-made"]);
});

Deno.test("a promise that nobody waits for is heard of when it fails", async () => {
  using heard = new HeardErrors();
  const ended = Promise.withResolvers<void>();
  unawaited("file", Promise.reject(new Error("a slip")), ended.resolve);
  await ended.promise;
  assertEquals(heard.errors, [{ where: "file", message: "a slip" }]);
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
