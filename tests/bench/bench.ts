// deno-lint-ignore-file no-console -- a command that prints its results.
/**
 * Measures our server and agent beside Konnectivity's, in one interleaved run:
 * the same certificates, target, generator and frontend (CONNECT on a unix
 * socket), logging off on both sides.
 *
 * Usage: `deno task bench [METRIC…] [--quick] [--rounds N] [--json FILE]
 * [--a MAKER] [--b MAKER]`
 *
 * MAKER is `ours` or `konnectivity`; `--a konnectivity` measures Konnectivity
 * beside itself, which shows how far a ratio may stray by chance. Exits with 1
 * when a bar is missed or a run was spoiled. Leave the machine alone meanwhile.
 *
 * @module
 */

import { parseArgs } from "@std/cli";
import { Child, endChildrenOnSignals } from "../peers/child.ts";
import { findPeer } from "../peers/peers.ts";
import { freePort } from "../peers/ports.ts";
import type { Maker } from "../peers/tunnel.ts";
import { Workspace } from "../peers/workspace.ts";
import { compare, type Pair } from "./comparison.ts";
import { Contender, type Sample, SpoiledRunError } from "./contender.ts";
import { FULL, type Metric, METRICS, QUICK, type Scale } from "./metrics.ts";

interface Plan {
  readonly metrics: readonly string[];
  readonly rounds: number;
  readonly scale: Scale;
  readonly makers: readonly [Maker, Maker];
  readonly jsonFile: string | undefined;
}

const MAKERS: readonly string[] = ["ours", "konnectivity"] satisfies Maker[];

/** What the command line asks for, or what is wrong with it. */
function readPlan(args: readonly string[]): Plan | string {
  const flags = parseArgs(args, {
    boolean: ["quick"],
    string: ["rounds", "json", "a", "b"],
    default: { a: "ours", b: "konnectivity" },
  });
  const metrics = flags._.length > 0
    ? flags._.map(String)
    : Object.keys(METRICS);
  const unknown = metrics.find((name) => METRICS[name] === undefined);
  if (unknown !== undefined) {
    return `unknown metric '${unknown}': ${Object.keys(METRICS).join(" ")}`;
  }
  const makers = [String(flags.a), String(flags.b)] as [Maker, Maker];
  if (!makers.every((maker) => MAKERS.includes(maker))) {
    return `--a and --b know ${MAKERS.join(" and ")}`;
  }
  const rounds = Number(flags.rounds ?? (flags.quick ? 2 : 5));
  if (!Number.isInteger(rounds) || rounds < 1) {
    return "--rounds wants 1 or more";
  }
  return {
    metrics,
    rounds,
    makers,
    scale: flags.quick ? QUICK : FULL,
    jsonFile: flags.json === undefined ? undefined : String(flags.json),
  };
}

type Results = Map<string, Pair[]>;

async function measureAll(
  plan: Plan,
  contenders: readonly [Contender, Contender],
): Promise<Results> {
  const results: Results = new Map(plan.metrics.map((name) => [name, []]));
  await warmUp(contenders);
  for (let round = 1; round <= plan.rounds; round++) {
    for (const name of plan.metrics) {
      const pair = await measurePair(METRICS[name]!, plan.scale, contenders);
      results.get(name)!.push(pair);
      console.error(`round ${round}/${plan.rounds} ${name}: ${brief(pair)}`);
    }
  }
  return results;
}

async function measurePair(
  metric: Metric,
  scale: Scale,
  [a, b]: readonly [Contender, Contender],
): Promise<Pair> {
  try {
    const ours = await a.measure(metric, scale);
    const theirs = await b.measure(metric, scale);
    return { ours, theirs };
  } catch (error) {
    if (!(error instanceof SpoiledRunError)) throw error;
    // Whatever broke may be broken for the next run too: begin afresh.
    await Promise.all([a.stop(), b.stop()]);
    return { spoiled: error.message };
  }
}

/** Compilers and caches are to be warm before the first run that counts. */
async function warmUp(
  contenders: readonly [Contender, Contender],
): Promise<void> {
  const little = { ...QUICK, bulkGb: 0.2, seconds: 1 };
  for (const contender of contenders) {
    for (const name of ["down1", "up16", "rr64", "conn"]) {
      await contender.measure(METRICS[name]!, little);
    }
  }
}

function brief(pair: Pair): string {
  if ("spoiled" in pair) return `SPOILED: ${pair.spoiled}`;
  const show = (sample: Sample) =>
    Object.entries(sample)
      .filter(([key]) => !["n", "errs", "wanted", "octets"].includes(key))
      .map(([key, value]) => `${key} ${format(value)}`).join(", ");
  return `\n  A ${show(pair.ours)}\n  B ${show(pair.theirs)}`;
}

/** Prints the table. @returns Whether every ratio is there and good enough. */
function report(plan: Plan, results: Results): boolean {
  const [a, b] = plan.makers;
  const rounds = `${plan.rounds} pair(s), median of per-pair ratios`;
  console.log(`\nA = ${a}, B = ${b}; ${rounds} [lowest–highest]\n`);
  let isGood = true;
  for (const [name, pairs] of results) {
    console.log(METRICS[name]!.title);
    for (const figure of METRICS[name]!.figures) {
      const result = compare(figure, pairs);
      if ("spoiled" in result) {
        isGood = false;
        console.log(`  ${figure.title}: no ratio, ${result.spoiled}`);
        continue;
      }
      // Konnectivity beside itself has nothing to reach.
      const isJudged = a === "ours" && result.isReached !== undefined;
      if (isJudged && !result.isReached) isGood = false;
      const verdict = isJudged
        ? `${result.wanted} ${result.isReached ? "reached" : "MISSED"}`
        : "";
      const spread = `[${format(result.lowest)}–${format(result.highest)}]`;
      console.log(
        `  ${figure.title.padEnd(12)} ${format(result.ours).padStart(8)} ` +
          `${format(result.theirs).padStart(8)} ${figure.unit.padEnd(8)} ` +
          `${format(result.ratio)}x ${spread} ${verdict}`.trimEnd(),
      );
    }
  }
  return isGood;
}

function format(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 1000) return Math.round(value).toString();
  return Number(value.toPrecision(3)).toString();
}

async function main(): Promise<number> {
  const plan = readPlan(Deno.args);
  if (typeof plan === "string") {
    console.error(plan);
    return 2;
  }
  const workspace = await Workspace.make();
  endChildrenOnSignals(() => workspace.remove());
  const targetAddress = `127.0.0.1:${freePort()}`;
  const target = new Child({
    name: "target",
    command: [await findPeer("loadgen"), "target", targetAddress],
    logFile: workspace.path("target.log"),
  });
  const contenders = plan.makers.map((maker) =>
    new Contender(maker, workspace, targetAddress)
  ) as [Contender, Contender];
  const results = await measureAll(plan, contenders);
  await Promise.all([...contenders.map((each) => each.stop()), target.stop()]);
  await workspace.remove();
  if (plan.jsonFile !== undefined) {
    const record = { ...plan, results: Object.fromEntries(results) };
    await Deno.writeTextFile(plan.jsonFile, JSON.stringify(record, null, 2));
  }
  return report(plan, results) ? 0 : 1;
}

if (import.meta.main) Deno.exit(await main());
