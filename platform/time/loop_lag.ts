/**
 * How late timers come because the process was busy with something else: its one
 * event loop serves everybody, so a second here is a second for each connection.
 *
 * There is one loop in a process, and so one figure.
 *
 * @module
 */

/**
 * The worst of the present and of the last such span is shown: a scrape every
 * fifteen seconds or every minute sees each stall once at least.
 */
const SPAN_MS = 60_000;

let worstMs = 0;
let worstBeforeMs = 0;
let spanEndsMs = 0;

/** Notes that a timer came so late. @param nowMs By a clock that only grows. */
export function noteLateTimer(lateMs: number, nowMs: number): void {
  if (nowMs >= spanEndsMs) {
    worstBeforeMs = nowMs < spanEndsMs + SPAN_MS ? worstMs : 0;
    worstMs = 0;
    spanEndsMs = nowMs + SPAN_MS;
  }
  worstMs = Math.max(worstMs, lateMs);
}

/** The worst of the last one to two minutes; 0 where nobody notes it. */
export function loopLagMs(): number {
  return Math.max(worstMs, worstBeforeMs);
}
