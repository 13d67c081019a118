/**
 * What passed in the last minutes, one sample for each status that came.
 *
 * @module
 */

import { type Signal, signal } from "@preact/signals";
import type { StatusAnswer } from "../../../proto/admin/status_answer.ts";

/** What the charts show. */
export const HISTORY_SECONDS = 300;
/** A second each, and some more: servers may send them unevenly. */
const SAMPLES_MAX = 400;
/** After so long without a sample the line is broken. */
const GAP_SECONDS = 5;

/** One moment; `null` where nothing is known. */
export interface Sample {
  /** Of the server's clock. */
  readonly seconds: number;
  readonly toTarget: number | null;
  readonly fromTarget: number | null;
  readonly p50: number | null;
  readonly p99: number | null;
  readonly dials: number | null;
}

/** The oldest first. */
export const samples: Signal<readonly Sample[]> = signal([]);

/** Adds what a status says. */
export function remember({ program, traffic }: StatusAnswer): void {
  const seconds = Date.parse(program.now) / 1000;
  const before = samples.value;
  const last = before.at(-1);
  if (Number.isNaN(seconds) || (last && seconds <= last.seconds)) return;
  const next = [...before.slice(-SAMPLES_MAX)];
  if (last && seconds - last.seconds > GAP_SECONDS) {
    next.push(nothingAt(last.seconds + 1));
  }
  next.push({
    seconds,
    toTarget: traffic.toTargetRate,
    fromTarget: traffic.fromTargetRate,
    p50: traffic.dialP50Ms ?? null,
    p99: traffic.dialP99Ms ?? null,
    dials: traffic.dialRate,
  });
  samples.value = next;
}

function nothingAt(seconds: number): Sample {
  const nothing = null;
  return {
    seconds,
    toTarget: nothing,
    fromTarget: nothing,
    p50: nothing,
    p99: nothing,
    dials: nothing,
  };
}
