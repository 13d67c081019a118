/**
 * `task lab doctor`: makes every fault, and says of each whether doctor has
 * named it, where, and how long that took.
 *
 * @module
 */

import { examineSubject, SUBJECTS } from "./subjects.ts";

function print(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}

let named = 0;
let all = 0;
let slowestMs = 0;
for (const subject of SUBJECTS.filter(({ ignore }) => ignore !== true)) {
  for await (const { fault, diagnosis, problem } of examineSubject(subject)) {
    const { what, code, hop, source } = fault;
    const { tookMs } = diagnosis;
    all++;
    if (problem === undefined) named++;
    slowestMs = Math.max(slowestMs, tookMs);
    const mark = problem === undefined ? "ok " : "BAD";
    const took = String(Math.round(tookMs)).padStart(5);
    print(
      `${mark} ${code} ${hop.padEnd(14)} ${took} ms  ${what} (${source})` +
        (problem === undefined ? "" : `: ${problem}`),
    );
  }
}
print(
  `${named} of ${all} faults named right, the slowest in ` +
    `${Math.round(slowestMs)} ms`,
);
Deno.exit(named === all ? 0 : 1);
