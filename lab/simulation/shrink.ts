/**
 * Makes a scenario that fails smaller: leaves out one dial or trouble after the
 * other for as long as something is still wrong.
 *
 * @module
 */

import type { Plan } from "./plan.ts";
import { runScenario, type ScenarioOptions } from "./scenario.ts";

/** How much of a failure tells its kind; what follows are circumstances. */
const KIND_LENGTH = 60;

/**
 * A part of `plan` that fails in the same way.
 *
 * @param failure How the whole of it fails.
 */
export async function shrink(
  plan: Plan,
  failure: string,
  options: ScenarioOptions = {},
): Promise<Plan> {
  const kind = kindOf(failure);
  let smallest = plan;
  for (const part of ["troubles", "dials"] as const) {
    for (let at = 0; at < smallest[part].length;) {
      const rest: readonly unknown[] = smallest[part].toSpliced(at, 1);
      const candidate = { ...smallest, [part]: rest } as Plan;
      const { failure } = await runScenario(candidate, options);
      if (failure !== undefined && kindOf(failure) === kind) {
        smallest = candidate;
      } else at++;
    }
  }
  return smallest;
}

function kindOf(failure: string): string {
  return failure.replaceAll(/\d+/g, "#").slice(0, KIND_LENGTH);
}
