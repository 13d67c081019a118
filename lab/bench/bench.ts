// deno-lint-ignore-file no-console -- a command that prints its results.
/**
 * Measures our tunnel beside others, in one interleaved run: the same target
 * and generator, logging off, every peer started here.
 *
 * Usage: `deno task lab bench [METRIC…] [--peers NAME,…] [--quick] [--rounds N]
 * [--json FILE] [--markdown FILE] [--a NAME]`
 *
 * `--a` is who is measured (`ours`), `--peers` (or `--b`) beside whom
 * (`konnectivity`). `--a konnectivity` measures Konnectivity beside itself,
 * which shows how far a ratio may stray by chance; `--a ours-server` and `--a
 * ours-agent` are tunnels of which one end only is ours. Exits with 1 when a
 * bar is missed or a run was spoiled. Leave the machine alone meanwhile.
 *
 * @module
 */

import {
  endChildrenOnSignals,
  killAllChildren,
} from "../../tests/support/program/child.ts";
import {
  findPeer,
  PeerMissingError,
} from "../../tests/support/program/peers.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { mustEnd } from "../../tests/support/program/run.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";
import { Contender } from "./contender.ts";
import { METRICS } from "./metrics.ts";
import { type Plan, readPlan } from "./plan.ts";
import { brief, isGood, renderMarkdown, renderText, rowsOf } from "./report.ts";
import { type Measured, measureRound } from "./rounds.ts";
import { loopback, preparePrograms } from "./tunnels/start_tunnel.ts";
import { startTarget } from "../peers/load_target.ts";

type Results = ReadonlyMap<string, Measured>;

async function measureAll(
  plan: Plan,
  a: Contender,
  peers: readonly Contender[],
): Promise<Results> {
  const results: Results = new Map(
    plan.metrics.map((name) => [name, { alone: [], pairs: new Map() }]),
  );
  for (let round = 0; round < plan.rounds; round++) {
    for (const [name, measured] of results) {
      const metric = METRICS[name]!;
      await measureRound(metric, plan.scale, a, peers, round, measured);
      console.error(`round ${round + 1}/${plan.rounds} ${name}`);
      const show = (who: string, outcomes: readonly unknown[]) =>
        console.error(`  ${who.padEnd(13)} ${outcomes.at(-1)}`);
      show(
        a.name,
        measured.alone.map((outcome) => brief(outcome, metric.figures)),
      );
      for (const [place, pairs] of measured.pairs) {
        show(
          peers[place]!.name,
          pairs.map(({ theirs }) => brief(theirs, metric.figures)),
        );
      }
    }
  }
  return results;
}

async function writeResults(plan: Plan, results: Results): Promise<boolean> {
  const rows = [...results].flatMap(([name, measured]) =>
    rowsOf(name, METRICS[name]!, measured, plan.a, plan.peers)
  );
  const caption = `${plan.a} beside ${plan.peers.join(", ")}; ` +
    `${await describeMachine()}; ${plan.rounds} round(s), medians of the ` +
    "ratios of runs next to each other [lowest–highest]";
  console.log(`\n${caption}\n\n${renderText(rows)}`);
  if (plan.markdownFile !== undefined) {
    await Deno.writeTextFile(plan.markdownFile, renderMarkdown(rows, caption));
  }
  if (plan.jsonFile !== undefined) {
    const runs = [...results].map(([name, { alone, pairs }]) => ({
      metric: name,
      alone,
      beside: [...pairs].map(([place, runs]) => ({
        peer: plan.peers[place],
        runs,
      })),
    }));
    const record = { caption, plan, rows, runs };
    await Deno.writeTextFile(plan.jsonFile, JSON.stringify(record, null, 2));
  }
  return isGood(rows);
}

async function describeMachine(): Promise<string> {
  const system = (await mustEnd(["uname", "-srm"])).trim();
  const date = new Date().toISOString().slice(0, 10);
  const { deno, v8 } = Deno.version;
  const cores = `${navigator.hardwareConcurrency} cores`;
  return `${date}, Deno ${deno} (V8 ${v8}), ${system}, ${cores}`;
}

async function main(): Promise<number> {
  const plan = readPlan(Deno.args, METRICS);
  if (typeof plan === "string") {
    console.error(plan);
    return 2;
  }
  try {
    for (const name of [plan.a, ...plan.peers]) await preparePrograms(name);
    const isOverGrpc = plan.metrics.some((name) =>
      METRICS[name]!.route === "grpc-uds"
    );
    if (isOverGrpc) await findPeer("grpcgen");
  } catch (error) {
    if (!(error instanceof PeerMissingError)) throw error;
    console.error(error.message);
    return 1;
  }
  return await measure(plan) ? 0 : 1;
}

/** @returns Whether everything that was wanted has been reached. */
async function measure(plan: Plan): Promise<boolean> {
  const workspace = await Workspace.make();
  endChildrenOnSignals(() => workspace.remove());
  try {
    const targetAddress = `127.0.0.1:${freePort()}`;
    await startTarget(workspace, targetAddress);
    const site = loopback(workspace, targetAddress);
    const a = new Contender(plan.a, site);
    const peers = plan.peers.map((name) => new Contender(name, site));
    const results = await measureAll(plan, a, peers);
    await Promise.all([a, ...peers].map((each) => each.stop()));
    return await writeResults(plan, results);
  } finally {
    await killAllChildren();
    await workspace.remove();
  }
}

if (import.meta.main) Deno.exit(await main());
