/**
 * Numbers as people read them: sizes, rates, durations, times.
 *
 * @module
 */

const COUNT = new Intl.NumberFormat("en-GB");
const SIZES = ["B", "kB", "MB", "GB", "TB", "PB"];

/** `5,000` */
export function countText(count: number): string {
  return COUNT.format(count);
}

/** `1 node`, `5,000 nodes` */
export function countOf(
  count: number,
  one: string,
  many: string = `${one}s`,
): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}

/** `1.2 MB` */
export function bytesText(bytes: number): string {
  let size = Math.max(0, bytes);
  let unit = 0;
  while (size >= 999.5 && unit < SIZES.length - 1) {
    size /= 1000;
    unit++;
  }
  const digits = unit === 0 || size >= 99.5 ? 0 : size >= 9.95 ? 1 : 2;
  return `${size.toFixed(digits)} ${SIZES[unit]}`;
}

/** `1.2 MB/s`; `–` where nothing moves, which is what most rows say. */
export function rateText(rate: number | undefined): string {
  if (rate === undefined || rate < 0.5) return "–";
  return `${bytesText(rate)}/s`;
}

/** `0.42 ms`, `38 ms`, `1.2 s` */
export function msText(ms: number | undefined): string {
  if (ms === undefined) return "–";
  if (ms >= 1000) return durationText(ms);
  return `${
    ms < 1 ? ms.toFixed(2) : ms < 10 ? ms.toFixed(1) : ms.toFixed(0)
  } ms`;
}

/** `1.2 s`, `45 s`, `12 min`, `3 h 20 min`, `5 d` */
export function durationText(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${seconds.toFixed(0)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 10) return `${hours} h ${minutes % 60} min`;
  if (hours < 48) return `${hours} h`;
  return `${countText(Math.floor(hours / 24))} d`;
}

/** How long ago: `12 min ago`. */
export function agoText(at: string | undefined, nowMs: number): string {
  const ms = Date.parse(at ?? "");
  if (Number.isNaN(ms)) return "–";
  const gone = nowMs - ms;
  return gone < 5000 ? "just now" : `${durationText(gone)} ago`;
}

/** `in 5 d`, `expired 2 h ago` */
export function untilText(at: string, nowMs: number): string {
  const ms = Date.parse(at);
  if (Number.isNaN(ms)) return "–";
  return ms > nowMs
    ? `in ${durationText(ms - nowMs)}`
    : `expired ${durationText(nowMs - ms)} ago`;
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
