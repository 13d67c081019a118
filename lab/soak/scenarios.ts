/**
 * Very many scenarios of the simulation, a process for each core.
 *
 * @module
 */

import type { Tally } from "../../tests/support/watch/tally.ts";

/** What one process prints when nothing is wrong. */
interface Summary {
  readonly scenarios: number;
  readonly events: number;
  readonly perSecond: number;
  readonly outcomes: Readonly<Record<string, number>>;
}

/** Runs `scenarios` with the seeds from `seed` on. */
export async function soakScenarios(
  scenarios: number,
  seed: number,
  tally: Tally,
): Promise<void> {
  const processes = Math.min(navigator.hardwareConcurrency, scenarios);
  const share = Math.ceil(scenarios / processes);
  const startMs = performance.now();
  const runs = await Promise.all(
    Array.from({ length: processes }, (_, at) => run(seed + at * share, share)),
  );
  const seconds = (performance.now() - startMs) / 1000;
  const done = runs.flatMap(({ summary }) => summary ?? []);
  for (const { output } of runs.filter(({ summary }) => !summary)) {
    tally.fail("a scenario of the simulation", output);
  }
  const total = sum(done.map((one) => one.scenarios));
  if (done.length < processes) return;
  const events = sum(done.map((one) => one.events));
  tally.pass(
    `${total} scenarios from seed ${seed} on, ${events} events, ` +
      `${Math.round(total / seconds)} scenarios/s in ${processes} processes`,
  );
  tally.note(`     ${JSON.stringify(merged(done))}`);
}

async function run(
  seed: number,
  scenarios: number,
): Promise<{ summary: Summary | undefined; output: string }> {
  const module = new URL("../simulation/simulate.ts", import.meta.url).pathname;
  const config = new URL("../../deno.json", import.meta.url).pathname;
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...[
        "run",
        "--quiet",
        `--config=${config}`,
        "--allow-read",
        "--allow-sys",
      ],
      ...["--allow-env", module],
      ...["--seed", String(seed), "--scenarios", String(scenarios)],
    ],
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  const output = text(stdout) + text(stderr);
  return { summary: code === 0 ? JSON.parse(text(stdout)) : undefined, output };
}

function merged(summaries: readonly Summary[]): Record<string, number> {
  const all: Record<string, number> = {};
  for (const { outcomes } of summaries) {
    for (const [what, count] of Object.entries(outcomes)) {
      all[what] = (all[what] ?? 0) + count;
    }
  }
  return all;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
