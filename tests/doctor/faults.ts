/**
 * `task lab doctor`: makes every fault, and says of each whether doctor has
 * named it, where, and how long that took.
 *
 * @module
 */

import {
  certificateFaults,
  identityFaults,
  placeFaults,
  tokenFaults,
} from "./agent_faults.ts";
import { examineAll, onEachFault } from "./doctor_runner.ts";
import { descriptorFaults } from "./descriptor_faults.ts";
import { DoctorStage } from "./doctor_stage.ts";
import type { Fault } from "./fault.ts";
import { lineFaults } from "./line_faults.ts";
import { nodeFaults } from "./node_faults.ts";
import { networkFaults, whyNoNetworks } from "./network_faults.ts";
import { settingFaults, stateFaults } from "./server_faults.ts";
import { copiedFaults, policyFlags, targetFaults } from "./target_faults.ts";

type Area = (
  stage: DoctorStage,
) => readonly Fault[] | Promise<readonly Fault[]>;

const AREAS: readonly Area[] = [
  placeFaults,
  certificateFaults,
  identityFaults,
  tokenFaults,
  ...whyNoNetworks() === undefined ? [networkFaults, lineFaults] : [],
  settingFaults,
  stateFaults,
  targetFaults,
  nodeFaults,
  descriptorFaults,
  copiedFaults,
];

function print(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}

let named = 0;
let all = 0;
let slowestMs = 0;

onEachFault(({ what, code, hop, source }, { tookMs }, problem) => {
  all++;
  if (problem === undefined) named++;
  slowestMs = Math.max(slowestMs, tookMs);
  const mark = problem === undefined ? "ok " : "BAD";
  const why = problem === undefined ? "" : `: ${problem}`;
  print(
    `${mark} ${code} ${hop.padEnd(14)} ${
      String(Math.round(tookMs)).padStart(5)
    } ms  ${what} (${source})${why}`,
  );
});

const folder = await Deno.makeTempDir({ prefix: "tunnel-" });
const policy = policyFlags({ path: (name) => `${folder}/${name}` });
for (const area of AREAS) {
  await using stage = await DoctorStage.start(
    ...area === targetFaults ? [`--policy-file=${policy}`] : [],
  );
  await examineAll(await area(stage), stage.path("home"));
}
await Deno.remove(folder, { recursive: true });
print(
  `${named} of ${all} faults named right, the slowest in ` +
    `${Math.round(slowestMs)} ms`,
);
Deno.exit(named === all ? 0 : 1);
