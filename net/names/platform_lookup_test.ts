import { assertEquals, assertRejects } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { PLATFORM_LIMITS, PlatformNames } from "./name_sources.ts";

Deno.test("names that are stuck in the platform's threads leave some to others", async () => {
  const timers = new FakeTimers();
  const asked: string[] = [];
  const names = new PlatformNames(timers, (host) => {
    asked.push(host);
    return host === "well.test"
      ? Promise.resolve(["10.0.0.1"])
      : new Promise(() => {});
  });
  const stuck = Array.from(
    { length: 20 },
    (_, n) => assertRejects(() => names.find(`n${n}.local`), Error, "timeout"),
  );
  assertEquals(asked.length, PLATFORM_LIMITS.perDomain);
  assertEquals(await names.find("well.test"), ["10.0.0.1"]);
  // A thread cannot be freed, so those that are taken stay taken.
  timers.advance(PLATFORM_LIMITS.timeoutMs);
  await Promise.all(stuck);
  assertEquals(asked.length, PLATFORM_LIMITS.perDomain + 1);
  assertEquals(await names.find("well.test"), ["10.0.0.1"]);
});
