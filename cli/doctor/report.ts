/**
 * What `tunnel doctor` found, for people and for programs: the steps in the order
 * in which they were walked, and the first thing that is wrong.
 *
 * @module
 */

import { firstFault } from "../../admin/doctor/walk/path_walk.ts";
import type { PathStep } from "../../proto/admin/path_check.ts";
import { ExitCode } from "../program/exit_codes.ts";
import { ofOthers } from "../../admin/ask/text_table.ts";

/** A path that was walked. */
export interface DoctorReport {
  /** Such as `agent`, `node edge-7`. */
  readonly subject: string;
  /** No fault, and the program runs; there may be warnings. */
  readonly isFine: boolean;
  /** The first failure, else the first warning. */
  readonly fault?: PathStep | undefined;
  readonly steps: readonly PathStep[];
}

/** Warnings of a program that does not run: nothing else need be wrong. */
const NOT_RUNNING: ReadonlySet<string> = new Set(["TUN121", "TUN402"]);

/** The report of all steps, in order. */
export function reportOf(
  subject: string,
  steps: readonly PathStep[],
): DoctorReport {
  const fault = firstFault(steps);
  return {
    subject,
    isFine: steps.every(({ outcome, code = "" }) =>
      outcome !== "failed" && !NOT_RUNNING.has(code)
    ),
    fault,
    steps,
  };
}

/** Several reports: what fails makes the command fail. */
export function exitCodeOf(reports: readonly DoctorReport[]): ExitCode {
  return reports.every(({ isFine }) => isFine) ? ExitCode.OK : ExitCode.FAILURE;
}

const MARKS: Readonly<Record<PathStep["outcome"], string>> = {
  ok: "ok",
  warning: "odd",
  failed: "FAILED",
  skipped: "-",
};

/** For people. @param isWide Includes unreached hops. */
export function reportText(report: DoctorReport, isWide = false): string {
  const { subject, steps, fault } = report;
  const shown = isWide ? steps : steps.filter((step) => !isUnreached(step));
  const width = Math.max(4, ...shown.map(({ hop }) => hop.length));
  const lines = shown.map((step) => {
    const { outcome, hop, message, tookMs } = step;
    const said = step === fault ? "see below" : ofOthers(message);
    return `  ${MARKS[outcome].padEnd(6)}  ${ofOthers(hop).padEnd(width)}  ` +
      said + tookText(tookMs);
  });
  const skipped = steps.length - shown.length;
  const rest = skipped === 0 ? [] : [
    `  (${skipped} more ${
      skipped === 1 ? "hop was" : "hops were"
    } not reached)`,
  ];
  return [`${ofOthers(subject)}:`, ...lines, ...rest]
    .map((line) => `${line}\n`).join("") + verdictText(fault);
}

/** It was not looked at, for something before it failed. */
function isUnreached({ outcome, tookMs }: PathStep): boolean {
  return outcome === "skipped" && tookMs === undefined;
}

/** Shorter is not worth reading. */
const TOOK_MS_MIN = 1;

function tookText(tookMs: number | undefined): string {
  return tookMs === undefined || tookMs < TOOK_MS_MIN
    ? ""
    : ` (${tookMs < 10 ? tookMs.toFixed(1) : Math.round(tookMs)} ms)`;
}

/** The first thing that is wrong, and what to do. */
export function verdictText(fault: PathStep | undefined): string {
  if (fault === undefined) return "Nothing is wrong.\n";
  const { hop, code, message, remedy, outcome } = fault;
  const first = outcome === "failed" ? "Wrong" : "Works, but";
  return [
    `${first}: ${ofOthers(hop)}: ${ofOthers(message)}` +
    (code === undefined ? "" : ` [${code}]`),
    ...remedy === undefined ? [] : [`Do: ${ofOthers(remedy)}`],
    ...code === undefined ? [] : [`More: tunnel explain ${code}`],
  ].map((line) => `${line}\n`).join("");
}
