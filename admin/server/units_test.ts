import { assertEquals } from "@std/assert";
import { agoText } from "../page/units.ts";

Deno.test("times are told by how far they are", () => {
  const now = Date.parse("2026-11-22T12:00:00Z");
  assertEquals(agoText("2026-11-22T11:48:00Z", now), "12m ago");
  assertEquals(agoText("2026-11-22T12:00:03Z", now), "just now");
  assertEquals(agoText("never", now), "–");
});
