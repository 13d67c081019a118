/**
 * Walks a path hop by hop and reports a finding for each: in order, each within
 * a deadline, and all within a common one. It does not know what the hops are.
 *
 * @module
 */

import { messageOf } from "../../../platform/errors/error_code.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import { orAborted, withDeadline } from "../../../platform/time/deadline.ts";
import type { PathStep } from "../../../proto/admin/path_check.ts";
import type { Timers } from "../../../proto/sync/clock.ts";
import type { Code } from "../../../proto/codes/codes.ts";

/** The finding of a hop: a step without its name and its time. */
export type Finding = Omit<PathStep, "hop" | "tookMs">;

/** One thing to look at. */
export interface Hop {
  readonly name: string;
  /** {@linkcode HOP_MS} unless given. */
  readonly deadlineMs?: number;
  /** What follows when its time is up; absent: just that it has failed. */
  readonly late?: Finding;
  /** Looked at although something before it failed. */
  readonly isIndependent?: boolean;
  /**
   * Looks, and changes nothing.
   *
   * @returns `undefined`: this hop does not apply here.
   */
  look(signal: AbortSignal): Promise<Finding | undefined> | Finding | undefined;
}

/** For one hop: long enough for three SYNs, short enough for a waiting user. */
export const HOP_MS = 2_000;

/** For all of them: a user who looks for a fault does not wait longer. */
export const WALK_MS = 4_500;

/** The finding when a hop's time is up. */
class LateError extends Error {}

/** How a walk goes. */
interface WalkOptions {
  /** The platform's unless given. */
  readonly timers?: Timers;
  readonly signal?: AbortSignal;
}

/**
 * Walks. A hop that throws has failed, with its error's message; after a
 * failure only independent hops are checked, and the rest is skipped. Hops are
 * taken one by one, because later ones may depend on earlier findings.
 */
export async function walk(
  hops: Iterable<Hop>,
  { timers = systemTimers, signal }: WalkOptions = {},
): Promise<readonly PathStep[]> {
  const steps: PathStep[] = [];
  const startMs = timers.now();
  let failedAt: string | undefined;
  for (const hop of hops) {
    const leftMs = startMs + WALK_MS - timers.now();
    const beganMs = timers.now();
    const isReached = failedAt === undefined || hop.isIndependent === true;
    const finding: Finding | undefined = isReached
      ? await look(hop, leftMs, timers, signal)
      : { outcome: "skipped", message: `not reached: ${failedAt} failed` };
    if (finding === undefined) continue;
    const step: PathStep = {
      hop: hop.name,
      ...finding,
      ...isReached
        ? { tookMs: Math.round((timers.now() - beganMs) * 10) / 10 }
        : {},
    };
    if (step.outcome === "failed") failedAt ??= hop.name;
    steps.push(step);
  }
  return steps;
}

async function look(
  hop: Hop,
  leftMs: number,
  timers: Timers,
  signal: AbortSignal | undefined,
): Promise<Finding | undefined> {
  const timeoutMs = Math.min(hop.deadlineMs ?? HOP_MS, leftMs);
  if (timeoutMs <= 0) {
    return { outcome: "skipped", message: "no time was left to look at it" };
  }
  try {
    return await withDeadline(
      {
        timers,
        timeoutMs,
        late: () =>
          new LateError(`no answer within ${Math.round(timeoutMs)} ms`),
        signal,
      },
      // A hop that does not mind its signal is left alone when its time is up.
      (signal) => orAborted((async () => await hop.look(signal))(), signal),
    );
  } catch (error) {
    if (error instanceof LateError && hop.late !== undefined) return hop.late;
    return { outcome: "failed", message: messageOf(error) };
  }
}

/** The first thing that is wrong; else the first that is odd. */
export function firstFault(steps: readonly PathStep[]): PathStep | undefined {
  return steps.find(({ outcome }) => outcome === "failed") ??
    steps.find(({ outcome }) => outcome === "warning");
}

/** A fault, or something odd. */
export function failed(
  code: Code,
  message: string,
  remedy: string,
): Finding {
  return { outcome: "failed", code, message, remedy };
}

/** Something odd that does not stop anything. */
export function warned(
  code: Code,
  message: string,
  remedy: string,
): Finding {
  return { outcome: "warning", code, message, remedy };
}

/** No fault was found. */
export function fine(message: string): Finding {
  return { outcome: "ok", message };
}

/** Nothing could be said about it. */
export function skipped(message: string): Finding {
  return { outcome: "skipped", message };
}
