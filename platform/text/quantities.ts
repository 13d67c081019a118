/**
 * Times, sizes and rates as people read them, in one style for all commands:
 * `3m12s`, `1.2 MB`, `1.2 MB/s`, `12 ms`, `9,624`.
 *
 * @module
 */

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Powers of 1,000, as networks count. */
const POWERS = ["", "k", "M", "G", "T", "P"] as const;

/** How long something has lasted, or is to last: two units at most. */
export function ageText(ms: number): string {
  const rest = Math.max(0, ms);
  if (rest < MINUTE_MS) return `${Math.floor(rest / SECOND_MS)}s`;
  if (rest < HOUR_MS) return twoUnits(rest, [MINUTE_MS, "m"], [SECOND_MS, "s"]);
  if (rest < DAY_MS) return twoUnits(rest, [HOUR_MS, "h"], [MINUTE_MS, "m"]);
  return twoUnits(rest, [DAY_MS, "d"], [HOUR_MS, "h"]);
}

/** `0 B`, `812 B`, `1.2 kB`, `12 kB`. */
export function sizeText(bytes: number): string {
  return `${shortCount(bytes, " ")}B`;
}

/** `12`, `3.4k`, `1.2G`: short enough for a column. */
export function shortCount(count: number, gap = ""): string {
  let [power, rest] = [0, Math.max(0, count)];
  // 999.96 would be shown as 1000.
  while (rest >= 999.5 && power < POWERS.length - 1) {
    rest /= 1_000;
    power++;
  }
  const digits = power > 0 && rest < 9.95 ? 1 : 0;
  return `${rest.toFixed(digits)}${gap}${POWERS[power]}`;
}

/** `1.2 MB/s`. */
export function rateText(bytesPerSecond: number): string {
  return `${sizeText(bytesPerSecond)}/s`;
}

/** A time that was measured: `0.4 ms`, `12 ms`, `1.3 s`. */
export function millisText(ms: number): string {
  if (ms >= 9_950) return `${(ms / 1_000).toFixed(0)} s`;
  if (ms >= 999.5) return `${(ms / 1_000).toFixed(1)} s`;
  return `${ms.toFixed(ms < 9.95 ? 1 : 0)} ms`;
}

/** `9,624`. */
export function countText(count: number): string {
  return Math.round(count).toString().replace(/\B(?=(?:\d{3})+$)/g, ",");
}

/** `1 node`, `3 nodes`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}

function twoUnits(
  ms: number,
  [bigMs, big]: readonly [number, string],
  [smallMs, small]: readonly [number, string],
): string {
  const bigs = Math.floor(ms / bigMs);
  const smalls = Math.floor((ms - bigs * bigMs) / smallMs);
  return smalls === 0 ? `${bigs}${big}` : `${bigs}${big}${smalls}${small}`;
}
