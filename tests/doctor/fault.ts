/**
 * What a fault is that `tunnel doctor` is to name, and when it has named it: the
 * right code at the right hop, with a remedy that fits, in time.
 *
 * @module
 */

import type { PathStep } from "../../proto/admin/path_check.ts";
import type { Code } from "../../proto/codes/codes.ts";
import type { Surroundings } from "../mistakes/surroundings.ts";
import { patience } from "../support/watch/patience.ts";

/** A fault that is made for real, and what must be said of it. */
export interface Fault extends Surroundings {
  readonly what: string;
  /** Where people have met it. */
  readonly source: string;
  /** Words behind `tunnel doctor`. */
  readonly args: readonly string[];
  readonly code: Code;
  /** What the name of the hop begins with. */
  readonly hop: string;
  /** What is in the remedy. */
  readonly remedy: RegExp;
  /** It works all the same: a warning, and exit code 0. */
  readonly isOdd?: boolean;
  readonly env?: Readonly<Record<string, string>>;
}

/** A row of a table of faults. */
export function fault(
  what: string,
  source: string,
  ...[code, hop, remedy, args, more]: [
    code: Code,
    hop: string,
    remedy: RegExp,
    args: readonly string[],
    more?: Partial<Fault>,
  ]
): Fault {
  return { what, source, code, hop, remedy, args, ...more };
}

/** What was said. */
export interface Diagnosis {
  readonly exit: number;
  readonly tookMs: number;
  readonly fault?: PathStep;
  /** As printed, for a report. */
  readonly text: string;
}

/** Who asks what is wrong waits no longer. */
export const DOCTOR_MS = 5_000;

/** @returns What is wrong with the diagnosis, if anything is. */
export function misdiagnosis(
  { code, hop, remedy, isOdd = false }: Fault,
  { exit, tookMs, fault }: Diagnosis,
): string | undefined {
  if (fault === undefined) return "it says that nothing is wrong";
  if (fault.code !== code) return `it names ${fault.code}, wanted ${code}`;
  if (!fault.hop.startsWith(hop)) return `at ${fault.hop}, wanted ${hop}`;
  if (!remedy.test(fault.remedy ?? "")) {
    return `its remedy is ${fault.remedy}, wanted ${remedy}`;
  }
  if (exit !== (isOdd ? 0 : 1)) return `it ends with ${exit}`;
  return tookMs > patience(DOCTOR_MS)
    ? `it takes ${Math.round(tookMs)} ms`
    : undefined;
}
