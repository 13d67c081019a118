import { assertEquals } from "@std/assert";
import { linkKeepalive } from "../link/link_limits.ts";
import { Keepalive, type KeepaliveOptions } from "./keepalive.ts";

/** When a silent peer is given up, on a path of such round trips. */
function lostAfterMs(options: KeepaliveOptions, rttMs: number): number {
  const keepalive = new Keepalive(options);
  for (let nowMs = 0;;) {
    nowMs = keepalive.nextDeadlineMs(0, rttMs);
    if (keepalive.due(0, rttMs, nowMs) === "lost") return nowMs;
  }
}

const CASES: readonly [flagMs: number, rttMs: number, lostMs: number][] = [
  [4_000, 0, 9_600],
  [4_000, 1, 9_600],
  [4_000, 5_000, 9_600],
  [1_000, 1, 2_400],
  [1_000, 500, 3_000],
  [1_000, 9_000, 6_600],
  [100, 1, 1_100],
  [3_600_000, 1, 3_605_600],
];

for (const [flagMs, rttMs, lostMs] of CASES) {
  Deno.test(`--keepalive-time ${flagMs} ms, round trips of ${rttMs} ms: lost after ${lostMs} ms`, () => {
    assertEquals(lostAfterMs(linkKeepalive(flagMs), rttMs), lostMs);
  });
}

Deno.test("a path that is silent for long is refreshed, and nobody waits for that", () => {
  const keepalive = new Keepalive(linkKeepalive(3_600_000));
  assertEquals(keepalive.nextDeadlineMs(0, 1), 60_000);
  assertEquals(keepalive.due(0, 1, 60_000), "refresh");
  assertEquals(keepalive.due(0, 1, 60_001), "nothing");
  assertEquals(keepalive.due(0, 1, 100_000), "nothing");
  assertEquals(keepalive.due(0, 1, 120_000), "refresh");
  // The answer came.
  assertEquals(keepalive.nextDeadlineMs(120_010, 1), 180_010);
});

Deno.test("bytes put the end off, and only an answer takes back what was asked", () => {
  const keepalive = new Keepalive({ intervalMs: 1_000, timeoutMs: 300 });
  assertEquals(keepalive.due(0, 0, 1_000), "ping");
  assertEquals(keepalive.due(1_200, 0, 1_300), "nothing");
  assertEquals(keepalive.nextDeadlineMs(1_200, 0), 1_500);
  assertEquals(keepalive.nextDeadlineMs(1_450, 0), 1_750);
  keepalive.answered(1_460);
  assertEquals(keepalive.nextDeadlineMs(1_460, 0), 2_460);
});

Deno.test("a late answer is reported once for each PING, before the end", () => {
  const keepalive = new Keepalive(linkKeepalive(4_000));
  assertEquals(keepalive.due(0, 1, 4_000), "ping");
  assertEquals(keepalive.due(0, 1, 4_500), "doubt");
  assertEquals(keepalive.due(0, 1, 5_000), "nothing");
  keepalive.answered(5_100);
  assertEquals(keepalive.due(5_100, 1, 9_100), "ping");
  assertEquals(keepalive.due(5_100, 1, 9_600), "doubt");
  assertEquals(keepalive.due(5_100, 1, 14_700), "lost");
});

Deno.test("a link that is cut one way is found in time by the end that still hears", () => {
  const keepalive = new Keepalive(linkKeepalive(4_000));
  // The last answer came just before the cut, at 0; the peer's own PING at 3,999.
  keepalive.answered(0);
  assertEquals(keepalive.asksBack(3_999), true);
  keepalive.asked(3_999);
  assertEquals(keepalive.asksBack(4_000), false, "it is asked already");
  assertEquals(keepalive.due(3_999, 1, 4_499), "doubt");
  assertEquals(keepalive.nextDeadlineMs(3_999, 1), 9_599);
});

Deno.test("two ends do not ask each other for ever", () => {
  const ends = [linkKeepalive(4_000), linkKeepalive(4_000)]
    .map((options) => new Keepalive(options));
  const [one, other] = ends as [Keepalive, Keepalive];
  assertEquals(one.due(0, 1, 4_000), "ping");
  assertEquals(other.asksBack(4_001), true);
  other.asked(4_001);
  // Its answer comes in front of its question.
  one.answered(4_002);
  assertEquals(one.asksBack(4_002), false);
  other.answered(4_003);
});
