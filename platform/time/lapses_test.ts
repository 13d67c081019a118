import { assertEquals } from "@std/assert";
import type { Timers } from "../../proto/sync/clock.ts";
import { LAPSE_LOOK_MS, LAPSE_MS, LapseWatch } from "./loop_lag.ts";

/** How late each look comes, by either clock, and what is said of it. */
const CASES: readonly [
  name: string,
  lateMs: number,
  wallLateMs: number,
  lapseMs: number | undefined,
][] = [
  ["nothing", 0, 0, undefined],
  ["an event loop that was busy", 900, 900, undefined],
  ["a process that was stopped", 20_000, 20_000, 20_000],
  ["a machine that slept", 3, 3_600_000, 3_600_000],
  ["a clock that was put back", 0, -3_600_000, undefined],
  ["a stop, and a clock that was put back", 20_000, -40_000, 20_000],
  ["just enough", LAPSE_MS, LAPSE_MS, LAPSE_MS],
];

for (const [name, lateMs, wallLateMs, lapseMs] of CASES) {
  Deno.test(`${name} ${lapseMs === undefined ? "is no" : "is a"} lapse`, () => {
    let nowMs = 0;
    let wallMs = 1_000_000;
    let due: (() => void) | undefined;
    const timers: Timers = {
      now: () => nowMs,
      after(_, callback) {
        due = callback;
        return { cancel: () => void (due = undefined) };
      },
    };
    const lapses: number[] = [];
    const watch = new LapseWatch(timers, () => wallMs, (ms) => lapses.push(ms));
    nowMs += LAPSE_LOOK_MS + lateMs;
    wallMs += LAPSE_LOOK_MS + wallLateMs;
    due!();
    // What comes then is usual again.
    nowMs += LAPSE_LOOK_MS;
    wallMs += LAPSE_LOOK_MS;
    due!();
    assertEquals(lapses, lapseMs === undefined ? [] : [lapseMs]);
    watch.stop();
    assertEquals(due, undefined);
  });
}
