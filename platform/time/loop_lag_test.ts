import { assertEquals } from "@std/assert";
import { loopLagMs, noteLateTimer } from "./loop_lag.ts";

Deno.test("the worst of the last minute or two is shown, then forgotten", () => {
  // Later than whatever another test of this process has noted.
  const beginMs = 1e12;
  noteLateTimer(20, beginMs);
  noteLateTimer(1_500, beginMs + 500);
  noteLateTimer(3, beginMs + 1_000);
  assertEquals(loopLagMs(), 1_500);
  noteLateTimer(4, beginMs + 61_000);
  assertEquals(loopLagMs(), 1_500);
  noteLateTimer(5, beginMs + 122_000);
  assertEquals(loopLagMs(), 5);
  noteLateTimer(900, beginMs + 123_000);
  noteLateTimer(6, beginMs + 400_000);
  assertEquals(loopLagMs(), 6);
});
