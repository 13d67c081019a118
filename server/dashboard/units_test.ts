import { assertEquals } from "@std/assert";
import {
  agoText,
  bytesText,
  countOf,
  durationText,
  msText,
  rateText,
  untilText,
} from "./page/units.ts";

Deno.test("numbers are as people read them", () => {
  assertEquals(
    [0, 999, 1000, 12_345, 123_456, 999_600, 5e12].map(bytesText),
    ["0 B", "999 B", "1.00 kB", "12.3 kB", "123 kB", "1.00 MB", "5.00 TB"],
  );
  assertEquals([undefined, 0, 1500].map(rateText), ["–", "–", "1.50 kB/s"]);
  assertEquals([undefined, 0.42, 3.14, 38, 1_200].map(msText), [
    "–",
    "0.42 ms",
    "3.1 ms",
    "38 ms",
    "1.2 s",
  ]);
  assertEquals([countOf(1, "node"), countOf(5_000, "node")], [
    "1 node",
    "5,000 nodes",
  ]);
});

Deno.test("times are told by how far they are", () => {
  const now = Date.parse("2026-11-22T12:00:00Z");
  assertEquals(
    [4_000, 45_000, 720_000, 12_000_000, 5 * 864e5].map(
      durationText,
    ),
    ["4.0 s", "45 s", "12 min", "3 h 20 min", "5 d"],
  );
  assertEquals(agoText("2026-11-22T11:48:00Z", now), "12 min ago");
  assertEquals(agoText("2026-11-22T12:00:03Z", now), "just now");
  assertEquals(agoText("never", now), "–");
  assertEquals(untilText("2026-11-27T13:00:00Z", now), "in 5 d");
  assertEquals(untilText("2026-11-22T10:00:00Z", now), "expired 2 h 0 min ago");
});
