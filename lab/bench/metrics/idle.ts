/**
 * Connections that say nothing, and a tunnel that has none.
 *
 * @module
 */

import type { Contender } from "../contender.ts";
import type { Sample } from "../generator.ts";
import type { Figure, Metric, Scale } from "../metric.ts";
import { usageOf } from "../../../tests/support/program/processes.ts";
import { sleep } from "../../../tests/support/watch/event_loop.ts";

const SETTLE_MS = 10_000;

function atRest(
  key: string,
  title: string,
  unit: string,
  limit: number,
): Figure {
  return { key, title, unit, better: "less", limit };
}

async function rest(contender: Contender, scale: Scale): Promise<Sample> {
  const [server, agent] = (await contender.coldTunnel("connect-uds")).pieces;
  if (server === undefined || agent === undefined) {
    throw new TypeError(`${contender.name} has no two ends`);
  }
  await sleep(SETTLE_MS);
  const pids = [server.pid, agent.pid] as const;
  const before = await Promise.all(pids.map(usageOf));
  await sleep(scale.restSeconds * 1000);
  const after = await Promise.all(pids.map(usageOf));
  const percent = (end: 0 | 1) =>
    (after[end]!.cpuSeconds - before[end]!.cpuSeconds) /
    scale.restSeconds * 100;
  return {
    serverRssMib: after[0]!.rssBytes / 2 ** 20,
    agentRssMib: after[1]!.rssBytes / 2 ** 20,
    serverCpuPct: percent(0),
    agentCpuPct: percent(1),
  };
}

export const IDLE_METRICS: Readonly<Record<string, Metric>> = {
  idle: {
    title: "idle connections",
    isFresh: true,
    // Only ours is held to a limit afterwards, and waiting for it takes long.
    load: (scale, name) => [
      "-mode=idle",
      `-n=${scale.idleConnections}`,
      `-settle=${name === "ours" ? scale.settleSeconds : 0}s`,
    ],
    figures: [
      {
        key: "KB_per_conn",
        title: "memory",
        unit: "KB each",
        better: "less",
        bars: { K: 0.4 },
        limit: 16,
        moonshotLimit: 10,
      },
      {
        key: "idle_cpu_pct",
        title: "CPU",
        unit: "%",
        better: "less",
        limit: 0.3,
        // A ratio to nothing says nothing.
        isOursAlone: true,
      },
      {
        key: "close_s",
        title: "all closed",
        unit: "s",
        better: "less",
        limit: 1,
      },
      {
        key: "rss_back_pct",
        title: "memory kept",
        unit: "% of start",
        better: "less",
        limit: 20,
        isOursAlone: true,
      },
    ],
  },
  rest: {
    title: "one link and nothing to do",
    isFresh: true,
    contenders: ["ours", "ours-server", "ours-agent", "konnectivity"],
    run: rest,
    figures: [
      atRest("serverRssMib", "server", "MiB", 90),
      atRest("agentRssMib", "agent", "MiB", 90),
      atRest("serverCpuPct", "server CPU", "%", 0.3),
      atRest("agentCpuPct", "agent CPU", "%", 0.3),
    ],
  },
};
