// deno-lint-ignore-file no-console -- a command that prints its findings.
/**
 * Looks for bytes that break what reads bytes from peers.
 *
 * Usage: `deno task fuzz [target…] [--seconds N] [--seed N]`
 *
 * Each target gets `--seconds` (10 unless given). The canary goes first: if its
 * bug is not found, nothing else is believed. A crash is printed in hexadecimal,
 * kept in `tests/fuzz/corpus/` and replayed by every later run; commit it with
 * the fix.
 *
 * @module
 */

import { parseArgs } from "@std/cli";
import { readCorpus, storeCrash } from "../tests/fuzz/corpus.ts";
import { CANARY, CANARY_RUNS_MAX, TARGETS } from "../tests/fuzz/registry.ts";
import { type Crash, fuzz } from "../tests/fuzz/runner.ts";
import type { FuzzTarget } from "../tests/fuzz/target.ts";

const SECONDS_DEFAULT = 10;

/** Exits 1 when a target breaks or the canary does not, 2 on wrong usage. */
async function main(): Promise<number> {
  const flags = parseArgs(Deno.args, { string: ["seconds", "seed"] });
  const seconds = Number(flags.seconds ?? SECONDS_DEFAULT);
  const seed = flags.seed === undefined
    ? crypto.getRandomValues(new Uint32Array(1))[0]!
    : Number(flags.seed);
  const names = flags._.map(String);
  const known = [...TARGETS, CANARY];
  const wrong = names.find((name) => !known.some((one) => one.name === name));
  if (wrong !== undefined || !(seconds > 0) || !Number.isInteger(seed)) {
    console.error(
      "Usage: deno task fuzz [target…] [--seconds N] [--seed N]\n" +
        `Targets: ${known.map(({ name }) => name).join(", ")}`,
    );
    return 2;
  }
  console.log(`SEED=${seed}`);
  const canary = fuzz(CANARY, {
    seed,
    isOver: (runs) => runs >= CANARY_RUNS_MAX,
  });
  if (canary.crash === undefined) {
    console.error(
      `canary: still alive after ${canary.runs} runs, so the fuzzer is broken`,
    );
    return 1;
  }
  console.log(`canary: found after ${canary.runs} runs, as it must be`);
  let failures = 0;
  for (const target of TARGETS) {
    if (names.length > 0 && !names.includes(target.name)) continue;
    if (!await fuzzOne(target, seed, seconds)) failures++;
  }
  return failures === 0 ? 0 : 1;
}

async function fuzzOne(
  target: FuzzTarget,
  seed: number,
  seconds: number,
): Promise<boolean> {
  const stored = await readCorpus(target.name);
  const endMs = performance.now() + seconds * 1000;
  const report = fuzz(target, {
    seed,
    stored: stored.map(({ input }) => input),
    isOver: () => performance.now() >= endMs,
  });
  console.log(
    `${target.name}: ${report.runs} runs on ${stored.length} stored inputs, ` +
      `${report.outcomes} outcomes`,
  );
  if (report.crash === undefined) return true;
  await describeCrash(target, report.crash);
  return false;
}

async function describeCrash(target: FuzzTarget, crash: Crash): Promise<void> {
  const { input, error, seed } = crash;
  const text = error instanceof Error ? error.stack ?? error.message : error;
  console.error(`${target.name} BROKE: ${text}`);
  if (seed !== undefined) console.error(`SEED=${seed}`);
  console.error(`input, ${input.length} bytes: ${input.toHex()}`);
  const remark = error instanceof Error ? firstLine(error.message) : `${error}`;
  console.error(`kept in ${await storeCrash(target.name, input, remark)}`);
}

function firstLine(text: string): string {
  return text.split("\n")[0]!;
}

if (import.meta.main) Deno.exitCode = await main();
