// deno-lint-ignore-file no-console -- a command that prints its results.
/**
 * Measures how much more a server carries with more workers, each of its
 * processes held to the same share of one core. Agent, target and generator are
 * held to nothing, and are not the limit while the machine has that much left:
 * the last column says in how many of its periods a worker was stopped.
 *
 * Usage: `deno task lab bench-workers [LOAD…] [--share 0.25] [--workers 1,2,4]
 * [--rounds 3] [--seconds 5]`
 *
 * A machine of two cores has little left beside four workers at a quarter of a
 * core each: `--share 0.1` shows there what `0.25` shows on a larger one.
 *
 * Runs of different numbers of workers alternate; the ratio is to the run of the
 * first number in the same round. Needs root and all permissions, for control
 * groups are files of the system's, and a machine that is left alone.
 *
 * @module
 */

import { parseArgs } from "@std/cli";
import {
  Child,
  endChildrenOnSignals,
  killAllChildren,
} from "../../tests/support/program/child.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";
import { sleep } from "../../tests/support/watch/event_loop.ts";
import { median } from "./comparison.ts";
import { generate, type Sample } from "./generator.ts";
import type { Route } from "./metric.ts";
import { loopback, type Site, startTunnel } from "./tunnels/start_tunnel.ts";
import { startTarget } from "../peers/programs.ts";

/** The number that is to grow, and one that must not. */
interface Load {
  readonly title: string;
  readonly route: Route;
  readonly flags: (seconds: number, workers: number) => readonly string[];
  readonly key: string;
  readonly unit: string;
}

// deno-fmt-ignore: the columns are the point.
const LOADS: Readonly<Record<string, Load>> = {
  bulk: { title: "bulk down, 16 connections", route: "connect-uds",
    flags: (seconds, workers) => ["-mode=down", "-n=16", `-gb=${(BULK_GB_PER_S * seconds * workers).toFixed(3)}`],
    key: "gbps", unit: "Gbit/s" },
  requests: { title: "requests, 64 at a time", route: "connect-uds",
    flags: (seconds) => ["-mode=rr", "-n=64", `-d=${seconds}s`], key: "per_s", unit: "/s" },
  connections: { title: "new connections, 16 at a time", route: "connect-uds",
    flags: (seconds) => ["-mode=conn", "-n=16", `-d=${seconds}s`], key: "per_s", unit: "/s" },
  grpc: { title: "gRPC dials, 16 at a time", route: "grpc-uds",
    flags: (seconds) => ["-mode=conn", "-n=16", `-d=${seconds}s`], key: "per_s", unit: "/s" },
};

/** About what a worker carries with the share that is usual here. */
const BULK_GB_PER_S = 0.08;

/** Ratios that are to be reached, by the number of workers. */
const BARS: ReadonlyMap<number, number> = new Map([[2, 1.9], [4, 3.6]]);

interface Run {
  readonly workers: number;
  readonly sample: Sample;
  /** Of all periods, in per cent. */
  readonly stopped: number;
}

/** The processes of a server, its parent among them. */
async function processesOf(server: Child, workers: number): Promise<number[]> {
  if (workers === 1) return [server.pid];
  await server.untilPrinted(/workers started/);
  const line = /processes="([\d ]+)"/.exec(await server.logTail());
  return [server.pid, ...line![1]!.split(" ").map(Number)];
}

async function run(
  load: Load,
  site: Site,
  workers: number,
  { share, seconds }: { readonly share: number; readonly seconds: number },
): Promise<Run> {
  const tunnel = await startTunnel("ours", site, {
    route: load.route,
    serverFlags: [`--workers=${workers}`, "--v=1"],
    agentFlags: ["--workers=2"],
  });
  const quotas = new CpuQuotas();
  try {
    const [server] = tunnel.pieces;
    const generator = async (flags: readonly string[]) =>
      await generate({
        workspace: site.workspace,
        program: tunnel.generator,
        flags: [
          ...flags,
          ...tunnel.flags,
          `-target=${site.target}`,
          `-pids=${tunnel.pieces.map(({ pid }) => pid).join()}`,
        ],
        pieces: tunnel.pieces,
      });
    // Agents find workers by chance; all are to have found all.
    await sleep(500 + 500 * workers);
    // The compilers of V8 have done their work before anybody is held back.
    await generator(load.flags(WARM_SECONDS, 4 * workers));
    for (const pid of await processesOf(server!, workers)) {
      await quotas.hold(pid, share);
    }
    const sample = await generator(load.flags(seconds, workers));
    const { periods, of } = await quotas.stopped();
    return { workers, sample, stopped: Math.round(100 * periods / of) };
  } finally {
    await tunnel.stop();
    await quotas.remove();
  }
}

const WARM_SECONDS = 2;

function print(load: Load, rounds: readonly (readonly Run[])[]): boolean {
  let isGood = true;
  const counts = rounds[0]!.map(({ workers }) => workers);
  for (const [at, workers] of counts.entries()) {
    const of = (key: string) => rounds.map((runs) => runs[at]!.sample[key]!);
    const ratios = rounds.map((runs) =>
      runs[at]!.sample[load.key]! / runs[0]!.sample[load.key]!
    );
    const bar = BARS.get(workers / counts[0]!);
    const isReached = bar === undefined || median(ratios) >= bar;
    isGood &&= isReached;
    const p99 = of("p99us");
    console.log([
      load.title.padEnd(30),
      `${workers} workers`,
      `${median(of(load.key)).toPrecision(4)} ${load.unit}`,
      `${median(ratios).toFixed(2)}x [${
        ratios.map((ratio) => ratio.toFixed(2)).join(" ")
      }]`,
      Number.isNaN(p99[0] ?? NaN) ? "" : `p99 ${median(p99) / 1000} ms`,
      `stopped in ${median(rounds.map((runs) => runs[at]!.stopped))} %`,
      bar === undefined
        ? ""
        : isReached
        ? `≥${bar}x reached`
        : `≥${bar}x MISSED`,
    ].join("  "));
  }
  return isGood;
}

/** Short: a process that is stopped waits for the rest of it, and a latency shows that. */
const PERIOD_US = 20_000;

/**
 * Holds processes to a share of one core each, by control groups of their own
 * (version 1 or 2 of the kernel's; needs root).
 */
class CpuQuotas {
  readonly #folders: string[] = [];

  /** @param share Of one core. @throws There are no control groups, or no right. */
  async hold(pid: number, share: number): Promise<void> {
    const v1 = "/sys/fs/cgroup/cpu";
    const isV1 = await Deno.stat(`${v1}/cpu.cfs_quota_us`)
      .then(() => true, () => false);
    const folder = `${
      isV1 ? v1 : "/sys/fs/cgroup"
    }/tunnel-bench-${Deno.pid}-${pid}`;
    await Deno.mkdir(folder);
    this.#folders.push(folder);
    const quota = Math.round(PERIOD_US * share);
    const rules = isV1
      ? { "cpu.cfs_period_us": PERIOD_US, "cpu.cfs_quota_us": quota }
      : { "cpu.max": `${quota} ${PERIOD_US}` };
    for (
      const [name, rule] of Object.entries({ ...rules, "cgroup.procs": pid })
    ) {
      await Deno.writeTextFile(`${folder}/${name}`, `${rule}`);
    }
  }

  /** In how many of the periods in which they ran they were stopped. */
  async stopped(): Promise<{ readonly periods: number; readonly of: number }> {
    let [periods, of] = [0, 0];
    for (const folder of this.#folders) {
      const text = await Deno.readTextFile(`${folder}/cpu.stat`);
      const read = (name: string) =>
        Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
      periods += read("nr_throttled");
      of += read("nr_periods");
    }
    return { periods, of };
  }

  /** The processes must have ended. */
  async remove(): Promise<void> {
    for (const folder of this.#folders.splice(0)) {
      await Deno.remove(folder).catch(() => {});
    }
  }
}

async function main(): Promise<number> {
  const flags = parseArgs([...Deno.args], {
    string: ["share", "workers", "rounds", "seconds"],
  });
  const counts = String(flags.workers ?? "1,2,4").split(",").map(Number);
  const share = Number(flags.share ?? 0.25);
  const seconds = Number(flags.seconds ?? 5);
  const names = flags._.length > 0 ? flags._.map(String) : Object.keys(LOADS);
  const workspace = await Workspace.make();
  endChildrenOnSignals(() => workspace.remove());
  try {
    const target = `127.0.0.1:${freePort()}`;
    await startTarget(workspace, target);
    const site = loopback(workspace, target);
    let isGood = true;
    for (const name of names) {
      const load = LOADS[name];
      if (load === undefined) {
        console.error(`unknown load ${name}: ${Object.keys(LOADS).join(" ")}`);
        return 2;
      }
      const rounds: Run[][] = [];
      for (let round = 0; round < Number(flags.rounds ?? 3); round++) {
        const runs: Run[] = [];
        for (const workers of counts) {
          runs.push(await run(load, site, workers, { share, seconds }));
        }
        rounds.push(runs);
      }
      isGood = print(load, rounds) && isGood;
    }
    return isGood ? 0 : 1;
  } finally {
    await killAllChildren();
    await workspace.remove();
  }
}

if (import.meta.main) Deno.exit(await main());
