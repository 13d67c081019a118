/**
 * Feeds a target until it breaks or time is up.
 *
 * Stored inputs and seeds first, then mutations of all that led to an outcome
 * not seen before. Same seed, same corpus, same code: same inputs.
 *
 * @module
 */

import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import { Prng } from "../support/memory/prng.ts";
import { mutate } from "./mutators.ts";
import type { FuzzTarget } from "./target.ts";

/** How many inputs are kept for mutation. */
const POOL_INPUTS_MAX = 500;

/** Attempts to make a crash smaller. */
const SHRINK_RUNS_MAX = 2000;

/** Options of {@linkcode fuzz}. */
export interface FuzzOptions {
  readonly seed: number;
  /** Inputs to try before anything else, such as earlier crashes. */
  readonly stored?: readonly Uint8Array[];
  /** Asked before each mutation with the number of those done. */
  isOver(runs: number): boolean;
}

/** An input that breaks the target. */
export interface Crash {
  /** Made as small as it was easy to. */
  readonly input: Uint8Array;
  readonly error: unknown;
  /** With this seed the first mutation breaks it; absent for stored inputs. */
  readonly seed?: number;
}

/** What a run has seen. */
export interface FuzzReport {
  /** Mutations tried. */
  readonly runs: number;
  /** Outcomes that differ; few mean that the mutations get nowhere. */
  readonly outcomes: number;
  readonly crash?: Crash;
}

/** See the module description. Stops at the first crash. */
export function fuzz(target: FuzzTarget, options: FuzzOptions): FuzzReport {
  const outcomes = new Set<string>();
  const pool: Uint8Array[] = [];
  for (const input of [...options.stored ?? [], ...target.seeds]) {
    const result = attempt(target, input);
    if ("error" in result) return report(0, { input, error: result.error });
    outcomes.add(result.outcome);
    pool.push(input);
  }
  // Replaying `seed + n` must not depend on what runs 0 to n-1 have found, so
  // found inputs wait beside the pool, and only some mutations draw on them.
  const found: Uint8Array[] = [];
  let runs = 0;
  for (; !options.isOver(runs); runs++) {
    const seed = (options.seed + runs) >>> 0;
    const prng = new Prng(seed);
    const useFound = prng.below(2) === 0 && found.length > 0;
    const input = mutate(target, useFound ? found : pool, prng);
    const result = attempt(target, input);
    if ("error" in result) {
      const crash = shrink(target, input, result.error);
      return report(runs + 1, useFound ? crash : { ...crash, seed });
    }
    if (outcomes.has(result.outcome)) continue;
    outcomes.add(result.outcome);
    if (found.length < POOL_INPUTS_MAX) found.push(input);
    else found[prng.below(POOL_INPUTS_MAX)] = input;
  }
  return report(runs);

  function report(runs: number, crash?: Crash): FuzzReport {
    const seen = { runs, outcomes: outcomes.size };
    return crash === undefined ? seen : { ...seen, crash };
  }
}

type Result = { readonly outcome: string } | { readonly error: unknown };

/** The one place that catches what a target throws. */
function attempt(target: FuzzTarget, input: Uint8Array): Result {
  try {
    // A copy: a target that writes into its input would change the pool.
    return { outcome: target.run(input.slice()) };
  } catch (error) {
    return { error };
  }
}

/** Drops records, then bytes, while the same thing goes wrong. */
function shrink(target: FuzzTarget, input: Uint8Array, error: unknown): Crash {
  const kind = kindOf(error);
  let smallest: Crash = { input, error };
  let left = SHRINK_RUNS_MAX;
  for (const split of [(all: Uint8Array) => target.split(all), bytewise]) {
    for (let at = 0; at < split(smallest.input).length && left > 0; left--) {
      const pieces = split(smallest.input);
      pieces.splice(at, 1);
      const candidate = joinedBytes(pieces);
      const result = attempt(target, candidate);
      if ("error" in result && kindOf(result.error) === kind) {
        smallest = { input: candidate, error: result.error };
      } else at++;
    }
  }
  return smallest;
}

function bytewise(input: Uint8Array): Uint8Array[] {
  return Array.from(input, (byte) => Uint8Array.of(byte));
}

/** Errors of one kind have one place of origin and one class. */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const frames = (error.stack ?? "").split("\n").filter((line) =>
    /^\s+at /.test(line)
  );
  return `${error.name} ${frames[0]}`;
}
