// deno-lint-ignore-file no-console -- a command that prints its findings.
/**
 * What must hold before every commit, in seconds: format, lint, types, layers,
 * tidiness and the fast tests.
 *
 * Usage: `deno task ok [STEP…]`
 *
 * The tests run beside the other steps.
 *
 * Prints a line for each step, the whole output of those that fail, and ends
 * with `N passed, N failed, N skipped`.
 *
 * @module
 */

import { Tally } from "../tests/support/watch/tally.ts";
import { runTests, testFiles } from "./test_engine.ts";
import { withoutPasses } from "./tests.ts";

const CHECKS: Readonly<Record<string, readonly string[]>> = {
  fmt: ["fmt", "--check"],
  lint: ["lint"],
  check: ["check"],
  layers: ["task", "--quiet", "layers"],
  tidy: ["task", "--quiet", "tidy"],
};

interface Outcome {
  readonly ok: boolean;
  readonly output: string;
  readonly seconds: string;
}

async function deno(args: readonly string[]): Promise<Outcome> {
  const begin = performance.now();
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [...args],
    env: { NO_COLOR: "1" },
    stdin: "null",
  }).output();
  const [said, complained] = [stdout, stderr].map((bytes) =>
    new TextDecoder().decode(bytes)
  );
  return {
    ok: success,
    output: `${said}${complained}`,
    seconds: `${((performance.now() - begin) / 1000).toFixed(1)} s`,
  };
}

async function check(name: string, tally: Tally): Promise<void> {
  // deno-lint-ignore tunnel/own-keys -- it is one of its own.
  const { ok, output, seconds } = await deno(CHECKS[name]!);
  if (ok) tally.pass(`${name} (${seconds})`);
  else tally.fail(`${name} (${seconds})`, output.trimEnd());
}

async function tests(tally: Tally): Promise<void> {
  const run = await runTests("fast", await testFiles("fast"));
  tally.add(run);
  const took = `(${run.seconds.toFixed(1)} s)`;
  if (run.ok) return tally.note(`PASS tests ${took}`);
  tally.note(`FAIL tests ${took}\n${withoutPasses(run.output)}`);
}

async function main(): Promise<number> {
  const wanted = Deno.args.length > 0
    ? Deno.args
    : [...Object.keys(CHECKS), "tests"];
  const unknown = wanted.filter((name) =>
    !(name in CHECKS) && name !== "tests"
  );
  if (unknown.length > 0) {
    const names = [...Object.keys(CHECKS), "tests"].join(", ");
    console.error(`Cannot run "${unknown}": the steps are ${names}`);
    return 2;
  }
  const tally = new Tally();
  const testing = wanted.includes("tests") ? tests(tally) : undefined;
  for (const name of wanted) if (name in CHECKS) await check(name, tally);
  await testing;
  return tally.end();
}

if (import.meta.main) Deno.exit(await main());
