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

Deno.test("any byte takes back what was asked", () => {
  const keepalive = new Keepalive({ intervalMs: 1_000, timeoutMs: 300 });
  assertEquals(keepalive.due(0, 0, 1_000), "ping");
  assertEquals(keepalive.due(1_200, 0, 1_300), "nothing");
  assertEquals(keepalive.nextDeadlineMs(1_200, 0), 2_200);
});
