/**
 * Makes faults, one after the other, and asks the program as people run it.
 *
 * @module
 */

import { plainEnvironment, runToEnd } from "../support/program/run.ts";
import { ourCommand } from "../support/program/tunnel.ts";
import { type Diagnosis, type Fault, misdiagnosis } from "./fault.ts";

/** A fault, and what became of it. */
export interface Examined {
  readonly fault: Fault;
  readonly diagnosis: Diagnosis;
  /** Absent: it was named right. */
  readonly problem?: string;
}

/** @param home Nothing of this machine is in it. */
export async function examine(fault: Fault, home: string): Promise<Examined> {
  let diagnosis: Diagnosis | undefined;
  const run = async () => void (diagnosis = await ask(fault, home));
  await (fault.around === undefined ? run() : fault.around(run));
  const problem = misdiagnosis(fault, diagnosis!);
  return {
    fault,
    diagnosis: diagnosis!,
    ...problem === undefined ? {} : { problem },
  };
}

async function ask(fault: Fault, home: string): Promise<Diagnosis> {
  const command = ourCommand("doctor", ...fault.args, "--output=json");
  const env = { ...plainEnvironment(home), ...fault.env };
  const beganMs = performance.now();
  const { code, stdout, stderr } = await runToEnd(
    [...fault.prefix ?? [], ...command],
    { clearEnv: true, env },
  );
  const tookMs = performance.now() - beganMs;
  const found = faultIn(stdout);
  return {
    ...{ exit: code, tookMs, text: stdout + stderr },
    ...found === undefined ? {} : { fault: found },
  };
}

function faultIn(text: string): Diagnosis["fault"] {
  try {
    return JSON.parse(text).fault;
  } catch {
    // The caller's report shows what was printed instead.
    return undefined;
  }
}
