/**
 * What passed in the last hour: what the server has kept, and a sample for each
 * status that came since.
 *
 * @module
 */

import { type Signal, signal } from "@preact/signals";
import type {
  HistoryAnswer,
  HistorySample,
} from "../../proto/admin/list_answers.ts";
import type { StatusAnswer } from "../../proto/admin/status_answer.ts";

/** What the charts show. */
export const HISTORY_SECONDS = 3_600;
/** Of those that came each is kept; before that one of each of these steps. */
const RECENT_SECONDS = 300;
const STEP_SECONDS = 10;
/** After so long without a sample the line is broken. */
const GAP_SECONDS = 5;

/** One moment; without fields where nothing is known. */
export interface Sample extends Partial<HistorySample> {
  /** Of the server's clock. */
  readonly seconds: number;
}

/** The oldest first. */
export const samples: Signal<readonly Sample[]> = signal([]);

/** Adds what a status says. */
export function remember({ program, traffic }: StatusAnswer): void {
  const seconds = Date.parse(program.now) / 1000;
  const before = samples.value;
  const last = before.at(-1);
  if (Number.isNaN(seconds) || (last && seconds <= last.seconds)) return;
  const next = thinned(before, seconds);
  if (last && seconds - last.seconds > GAP_SECONDS) {
    next.push({ seconds: last.seconds + 1 });
  }
  next.push({ ...traffic, seconds });
  samples.value = next;
}

/** Puts what the server has kept in front of, and between, what is known. */
export function recall({ samples: kept }: HistoryAnswer): void {
  const known = samples.value.filter(({ conduits }) => conduits !== undefined);
  const older = kept.map((sample): Sample => ({
    ...sample,
    seconds: Date.parse(sample.at) / 1000,
  }));
  const all = [...older, ...known].sort((a, b) => a.seconds - b.seconds);
  samples.value = thinned(all, all.at(-1)?.seconds ?? 0);
}

function thinned(all: readonly Sample[], nowSeconds: number): Sample[] {
  const step = ({ seconds }: Sample) => Math.floor(seconds / STEP_SECONDS);
  return all.filter((sample, at) =>
    sample.seconds > nowSeconds - RECENT_SECONDS ||
    (sample.seconds > nowSeconds - HISTORY_SECONDS &&
      (at === 0 || step(sample) !== step(all[at - 1]!)))
  );
}
