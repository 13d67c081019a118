/**
 * What the tunnel is measured with, through a service proxy instead: bulk,
 * requests, new connections.
 *
 * @module
 */

import type { Contender } from "../contender.ts";
import { type Sample, SpoiledRunError } from "../generator.ts";
import type {
  ContenderName,
  Figure,
  Metric,
  Ratios,
  Scale,
} from "../metric.ts";
import { startProxy, TCP_PROXIES } from "./start_proxy.ts";
import type { RunningProxy } from "./start_proxy.ts";

/** Enough for V8's compilers. */
const WARM_UP: readonly (readonly string[])[] = [
  ["-mode=probe", "-d=30s"],
  ["-mode=down", "-n=1", "-gb=0.3"],
  ["-mode=up", "-n=1", "-gb=0.3"],
  ["-mode=rr", "-n=64", "-d=1s"],
  ["-mode=conn", "-n=16", "-d=1s"],
];

/** Kept between runs, since a new one is cold. */
const warm = new Map<ContenderName, RunningProxy>();

async function warmProxy(contender: Contender): Promise<RunningProxy> {
  const running = warm.get(contender.name);
  if (running !== undefined) return running;
  const proxy = await startProxy(contender.name, {
    workspace: contender.workspace,
    targets: [contender.site.target],
  });
  warm.set(contender.name, proxy);
  for (const flags of WARM_UP) await contender.generate(proxy, flags);
  return proxy;
}

async function stopWarm(name: ContenderName): Promise<void> {
  const proxy = warm.get(name);
  warm.delete(name);
  await proxy?.stop();
}

function proxied(
  title: string,
  figures: readonly Figure[],
  load: (scale: Scale) => readonly string[],
): Metric {
  return {
    title: `service proxy: ${title}`,
    contenders: TCP_PROXIES,
    isOnRequest: true,
    figures,
    async run(contender, scale): Promise<Sample> {
      try {
        const proxy = await warmProxy(contender);
        return await contender.generate(proxy, load(scale));
      } catch (error) {
        // Whatever broke may be broken for the next run too.
        if (error instanceof SpoiledRunError) await stopWarm(contender.name);
        throw error;
      }
    },
    async close() {
      await Promise.all([...warm.keys()].map(stopWarm));
    },
  };
}

function figure(
  key: string,
  title: string,
  unit: string,
  better: Figure["better"],
  bars: Ratios = {},
): Figure {
  return { key, title, unit, better, bars };
}

function bulk(direction: "down" | "up"): Metric {
  return proxied(`bulk ${direction}, 1 connection`, [
    figure("gbps", "speed", "Gbit/s", "more", { N: 1 }),
    figure("cpu_s_per_GB", "CPU", "s/GB", "less", { N: 1.2 }),
    figure("rssMB", "memory after", "MB", "less"),
  ], (scale) => [`-mode=${direction}`, "-n=1", `-gb=${scale.bulkGb}`]);
}

export const PROXY_LOADS: Readonly<Record<string, Metric>> = {
  "proxy-down1": bulk("down"),
  "proxy-up1": bulk("up"),
  "proxy-rr64": proxied("request/response, 64 connections", [
    figure("per_s", "requests", "/s", "more", { N: 0.9 }),
    figure("cpu_ms_per_1k", "CPU", "ms/1k", "less"),
    figure("p50us", "p50", "µs", "less"),
    figure("p99us", "p99", "µs", "less", { N: 1.2 }),
  ], ({ seconds }) => ["-mode=rr", "-n=64", `-d=${seconds}s`]),
  "proxy-conn": proxied("new connections", [
    figure("per_s", "connections", "/s", "more", { N: 0.8 }),
    figure("cpu_ms_per_1k", "CPU", "ms/1k", "less"),
    figure("p50us", "p50", "µs", "less"),
    figure("p99us", "p99", "µs", "less"),
  ], ({ seconds }) => ["-mode=conn", "-n=16", `-d=${seconds}s`]),
};
