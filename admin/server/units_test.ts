import { assertEquals } from "@std/assert";
import { agoText, msText, rateText, untilText } from "../page/units.ts";

Deno.test("numbers are as in our other programs, or a dash", () => {
  assertEquals([undefined, 0, 1500].map(rateText), ["–", "–", "1.5 kB/s"]);
  assertEquals([undefined, 0.42, 38, 1_200].map(msText), [
    "–",
    "0.4 ms",
    "38 ms",
    "1.2 s",
  ]);
});

Deno.test("times are told by how far they are", () => {
  const now = Date.parse("2026-11-22T12:00:00Z");
  assertEquals(agoText("2026-11-22T11:48:00Z", now), "12m ago");
  assertEquals(agoText("2026-11-22T12:00:03Z", now), "just now");
  assertEquals(agoText("never", now), "–");
  assertEquals(untilText("2026-11-27T13:00:00Z", now), "in 5d1h");
  assertEquals(untilText("2026-11-22T10:00:00Z", now), "expired 2h ago");
});
