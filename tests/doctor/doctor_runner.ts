/**
 * Makes faults, one after the other, and asks the program as people run it.
 *
 * @module
 */

import { plainEnvironment } from "../support/program/run.ts";
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

/** All of them. @returns What was not named right, as text. */
export async function examineAll(
  faults: readonly Fault[],
  home: string,
): Promise<string> {
  const wrong: string[] = [];
  for (const fault of faults) {
    const { problem, diagnosis } = await examine(fault, home);
    onExamined?.(fault, diagnosis, problem);
    if (problem === undefined) continue;
    wrong.push(`${fault.what}: ${problem}\n${diagnosis.text}`);
  }
  return wrong.join("\n");
}

/** Set by who wants a table. */
let onExamined:
  | ((fault: Fault, diagnosis: Diagnosis, problem?: string) => void)
  | undefined;

/** Calls `seen` for each fault from now on. */
export function onEachFault(seen: NonNullable<typeof onExamined>): void {
  onExamined = seen;
}

async function ask(fault: Fault, home: string): Promise<Diagnosis> {
  const [program, ...args] = [
    ...fault.prefix ?? [],
    ...ourCommand("doctor", ...fault.args, "--output=json"),
  ];
  const beganMs = performance.now();
  const { code, stdout, stderr } = await new Deno.Command(program!, {
    args,
    clearEnv: true,
    env: { ...plainEnvironment(home), ...fault.env },
    stdin: "null",
  }).output();
  const tookMs = performance.now() - beganMs;
  const decoder = new TextDecoder();
  const text = decoder.decode(stdout) + decoder.decode(stderr);
  const found = reportIn(decoder.decode(stdout));
  return {
    exit: code,
    tookMs,
    text,
    ...found?.fault === undefined ? {} : { fault: found.fault },
  };
}

function reportIn(text: string): Pick<Diagnosis, "fault"> | undefined {
  try {
    return JSON.parse(text);
  } catch {
    // The caller's report shows what was printed instead.
    return undefined;
  }
}
