// deno-lint-ignore-file no-console -- a command that prints its findings.
/**
 * Runs scenarios of a whole tunnel in memory, in virtual time.
 *
 * Usage: `deno task lab simulate [--seed N] [--scenarios N] [--trace]`
 *
 * Scenario after scenario with the seeds from `--seed` on; without it, seeds
 * are drawn. The first that fails is made smaller, printed with the end of its
 * trace, and ends the run. `--dials 0,3 --troubles 1` runs a part of one
 * scenario, as printed for a smaller one.
 *
 * @module
 */

import { parseArgs } from "@std/cli";
import { partOf, type Plan, planOf } from "./plan.ts";
import { type Report, runScenario } from "./scenario.ts";
import { shrink } from "./shrink.ts";

const TRACE_LINES = 60;

/** Exits 1 when a scenario fails, 2 on wrong usage. */
async function main(): Promise<number> {
  const flags = parseArgs(Deno.args, {
    string: ["seed", "scenarios", "dials", "troubles", "lines"],
    boolean: ["trace"],
  });
  const seed = Number(
    flags.seed ?? crypto.getRandomValues(new Uint32Array(1))[0],
  );
  const scenarios = Number(flags.scenarios ?? 1);
  if (!Number.isInteger(seed) || !(scenarios > 0)) {
    console.error(
      "Usage: deno task lab simulate [--seed N] [--scenarios N] [--trace]",
    );
    return 2;
  }
  const lines = Number(flags.lines ?? TRACE_LINES);
  if (flags.trace || flags.dials !== undefined) {
    const plan = partOf(
      planOf(seed),
      numbers(flags.dials),
      numbers(flags.troubles),
    );
    return await show(plan, flags.trace ? Infinity : lines);
  }
  return await runMany(seed, scenarios, lines);
}

async function runMany(
  seed: number,
  scenarios: number,
  lines: number,
): Promise<number> {
  const startMs = performance.now();
  const outcomes = new Map<string, number>();
  let events = 0;
  for (let index = 0; index < scenarios; index++) {
    const plan = planOf((seed + index) >>> 0);
    const report = await runScenario(plan);
    if (report.failure !== undefined) {
      console.log(`seed ${plan.seed} FAILED: ${report.failure}`);
      return await show(await shrink(plan, report.failure), lines);
    }
    events += report.events;
    for (const [what, count] of report.outcomes) {
      outcomes.set(what, (outcomes.get(what) ?? 0) + count);
    }
  }
  const seconds = (performance.now() - startMs) / 1000;
  console.log(JSON.stringify({
    firstSeed: seed,
    scenarios,
    events,
    perSecond: Math.round(scenarios / seconds),
    outcomes: Object.fromEntries([...outcomes].sort()),
  }));
  return 0;
}

async function show(plan: Plan, lines: number): Promise<number> {
  const report: Report = await runScenario(plan, { keepsTrace: true });
  const { dials, troubles, ...world } = plan;
  console.log(JSON.stringify(world));
  for (const dial of dials) console.log(`dial ${JSON.stringify(dial)}`);
  const all = planOf(plan.seed).troubles;
  const kept = all.flatMap((one, index) =>
    troubles.some((other) => JSON.stringify(one) === JSON.stringify(other))
      ? [index]
      : []
  );
  for (const trouble of troubles) {
    console.log(`trouble ${JSON.stringify(trouble)}`);
  }
  const { trace } = report;
  console.log(trace.slice(-Math.min(lines, trace.length)).join("\n"));
  console.log(`hash ${report.hash.toString(16)}, ${report.events} events`);
  if (report.failure === undefined) return 0;
  console.log(`FAILED: ${report.failure}`);
  console.log(
    `replay: deno task lab simulate --seed ${plan.seed} --dials ` +
      `${dials.map(({ number }) => number).join(",")} --troubles ${
        kept.join(",")
      }`,
  );
  return 1;
}

function numbers(list: unknown): number[] | undefined {
  if (list === undefined) return undefined;
  return list === "" ? [] : String(list).split(",").map(Number);
}

if (import.meta.main) Deno.exit(await main());
