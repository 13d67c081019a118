/**
 * How much more a server carries with more workers, each of its processes held
 * to the same share of one core. Agent, target and generator are held to nothing,
 * and are not the limit while the machine has that much left: "stopped" says in
 * how many of its periods a worker was stopped.
 *
 * Needs root, for control groups are files of the system's.
 *
 * @module
 */

import { sleep } from "../../tests/support/watch/event_loop.ts";
import { workersOf } from "../../tests/support/rigs/workers.ts";
import type { Contender } from "./contender.ts";
import type { Sample } from "./generator.ts";
import { less, type Metric, more, type Route } from "./metric.ts";
import { startTunnel } from "./tunnels/start_tunnel.ts";

/** Numbers of workers, and what the first one's rate is to be multiplied by. */
const BARS = [[1, 1], [2, 1.9], [4, 3.6]] as const;

/** Of one core. A machine of two has little left beside four that take more. */
const SHARE = navigator.hardwareConcurrency > 2 ? 0.25 : 0.1;

/** About what a worker carries with the larger share. */
const BULK_GB_PER_S = 0.08;

/** For each process; a worker gets its share of the load. */
const WARM_SECONDS = 4;

type Flags = (seconds: number, workers: number) => readonly string[];

function workersMetric(
  title: string,
  route: Route,
  [key, unit]: readonly [key: string, unit: string],
  flags: Flags,
): Metric {
  return {
    title: `${title}, ${SHARE} cores for each process of the server`,
    ...{ route, contenders: ["ours"], isOnRequest: true },
    figures: BARS.flatMap(([workers, limit]) => {
      const of = `with ${workers}`;
      return [
        more(`${key} ${of}`, of, unit),
        ...workers === 1
          ? []
          : [more(`ratio ${of}`, `${of} beside 1`, "x", { limit })],
        less(`p99us ${of}`, `p99 ${of}`, "µs"),
        less(`stopped ${of}`, `stopped ${of}`, "%"),
      ];
    }),
    async run(contender, { seconds }) {
      const all: Record<string, number> = {};
      for (const [workers] of BARS) {
        const sample = await measure(contender, route, flags, seconds, workers);
        for (const [name, value] of Object.entries(sample)) {
          all[`${name} with ${workers}`] = value;
        }
        all[`ratio with ${workers}`] = sample[key]! / all[`${key} with 1`]!;
      }
      return all;
    },
  };
}

async function measure(
  contender: Contender,
  route: Route,
  flags: Flags,
  seconds: number,
  workers: number,
): Promise<Sample> {
  const tunnel = await startTunnel("ours", contender.site, {
    route,
    serverFlags: [`--workers=${workers}`, "--v=1"],
    agentFlags: ["--workers=2"],
  });
  const quotas = new CpuQuotas();
  try {
    const server = tunnel.pieces[0]!;
    // Agents find workers by chance; all are to have found all.
    await sleep(500 + 500 * workers);
    // The compilers of V8 have done their work before anybody is held back.
    await contender.generate(tunnel, flags(WARM_SECONDS * workers, workers));
    const pids = workers === 1 ? [] : await workersOf(server);
    for (const pid of [server.pid, ...pids]) await quotas.hold(pid, SHARE);
    const sample = await contender.generate(tunnel, flags(seconds, workers));
    return { ...sample, stopped: await quotas.stopped() };
  } finally {
    await tunnel.stop();
    await quotas.remove();
  }
}

/**
 * As many callers for each process, whatever their number: what gathers while a
 * process is stopped is cheaper, and with fewer callers less does.
 */
function atATime(mode: "rr" | "conn", each: number): Flags {
  return (seconds, workers) => [
    ...[`-mode=${mode}`, `-n=${each * workers}`, `-d=${seconds}s`],
  ];
}

/** By name. */
export const WORKER_METRICS: Readonly<Record<string, Metric>> = {
  "workers-bulk": workersMetric(
    "bulk down, 16 connections",
    ...["connect-uds", ["gbps", "Gbit/s"]] as const,
    (seconds, workers) => {
      const gb = (BULK_GB_PER_S * seconds * workers).toFixed(3);
      return ["-mode=down", "-n=16", `-gb=${gb}`];
    },
  ),
  "workers-requests": workersMetric(
    "requests, 64 at a time for each",
    ...["connect-uds", ["per_s", "/s"]] as const,
    atATime("rr", 64),
  ),
  "workers-connections": workersMetric(
    "new connections, 16 at a time for each",
    ...["connect-uds", ["per_s", "/s"]] as const,
    atATime("conn", 16),
  ),
  "workers-grpc": workersMetric(
    "gRPC dials, 16 at a time for each",
    ...["grpc-uds", ["per_s", "/s"]] as const,
    atATime("conn", 16),
  ),
};

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

  /** In how many of the periods in which they ran they were stopped, in per cent. */
  async stopped(): Promise<number> {
    let [periods, of] = [0, 0];
    for (const folder of this.#folders) {
      const text = await Deno.readTextFile(`${folder}/cpu.stat`);
      const read = (name: string) =>
        Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
      periods += read("nr_throttled");
      of += read("nr_periods");
    }
    return Math.round(100 * periods / of);
  }

  /** The processes must have ended. */
  async remove(): Promise<void> {
    for (const folder of this.#folders.splice(0)) {
      await Deno.remove(folder).catch(() => {});
    }
  }
}
