/**
 * The table at the end of a run: a line for each fault.
 *
 * @module
 */

import type { Verdict } from "./verdict.ts";

const COLUMNS: readonly (readonly [string, (line: Verdict) => string])[] = [
  ["fault", ({ name }) => name],
  ["dials", ({ dials }) => String(dials)],
  ["failed", ({ failed }) => String(failed)],
  ["no way", ({ failedAllowed }) => String(failedAllowed)],
  ["retried", ({ retried }) => String(retried)],
  ["slowest dial", ({ slowestDialMs }) => `${slowestDialMs} ms`],
  ["longest stall", ({ longestStallMs }) => `${longestStallMs} ms`],
  ["cut (dead path)", ({ brokenDead }) => String(brokenDead)],
  ["cut (alive)", ({ brokenAlive }) => String(brokenAlive)],
  ["bytes lost", ({ lostBytes }) => String(lostBytes)],
  [
    "well after",
    ({ backMs }) =>
      Number.isFinite(backMs) ? `${Math.round(backMs)} ms` : "never",
  ],
  [
    "verdict",
    ({ problems, missed }) =>
      problems.length > 0 ? "FAIL" : missed === undefined ? "ok" : "ok (miss)",
  ],
];

/** Lines of markdown. */
export function reportTable(verdicts: readonly Verdict[]): string[] {
  const titles = COLUMNS.map(([title]) => title);
  return [
    row(titles),
    row(titles.map(() => "---")),
    ...verdicts.map((line) => row(COLUMNS.map(([, cell]) => cell(line)))),
    ...verdicts.filter(({ missed }) => missed !== undefined)
      .map(({ name, missed }) => `miss: ${name}: ${missed}`),
  ];
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}
