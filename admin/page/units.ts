/**
 * Numbers as all our programs write them (`platform/text/quantities.ts`), with `–`
 * where there is none, and times as this browser writes them.
 *
 * @module
 */

import {
  ageText,
  millisText,
  rateText as knownRateText,
} from "../../platform/text/quantities.ts";

/** `1.2 MB/s`; `–` where nothing moves, which is what most rows say. */
export function rateText(rate: number | undefined): string {
  return rate === undefined || rate < 0.5 ? "–" : knownRateText(rate);
}

/** `0.4 ms`, `38 ms`, `1.2 s` */
export function msText(ms: number | undefined): string {
  return ms === undefined ? "–" : millisText(ms);
}

/** How long ago: `12m ago`. */
export function agoText(at: string | undefined, nowMs: number): string {
  const ms = Date.parse(at ?? "");
  if (Number.isNaN(ms)) return "–";
  const gone = nowMs - ms;
  return gone < 5000 ? "just now" : `${ageText(gone)} ago`;
}

/** `in 5d`, `expired 2h ago` */
export function untilText(at: string, nowMs: number): string {
  const ms = Date.parse(at);
  if (Number.isNaN(ms)) return "–";
  return ms > nowMs
    ? `in ${ageText(ms - nowMs)}`
    : `expired ${ageText(nowMs - ms)} ago`;
}

/** `22 Nov 22:31:04`, where this browser is. */
export function timeText(at: string | number): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "–";
  return TIME.format(date).replace(",", "");
}

/** `22:31:04`, where this browser is. */
export function clockText(at: string | number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? "–" : CLOCK.format(date);
}

const TIME = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});
const CLOCK = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});
