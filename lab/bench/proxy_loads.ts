/**
 * What the tunnel is measured with, through a service proxy instead: bulk,
 * requests, new connections, also while one of three endpoints is dead. A dead
 * one either refuses or says nothing at all, as a machine does that has lost its
 * power; a run with a client that fails is spoiled.
 *
 * @module
 */

import { freePort } from "../../tests/support/program/ports.ts";
import {
  closedAddress,
  SilentTarget,
} from "../../tests/support/peers/probe_target.ts";
import { startTarget } from "../peers/load_target.ts";
import { type Figure, less, type Metric, more, type Scale } from "./metric.ts";
import { startTunnel } from "./tunnels/start_tunnel.ts";

/** A proxy, and who can be measured as one. */
const AS_PROXY = {
  route: "proxy",
  contenders: ["ours", "nginx"],
  isOnRequest: true,
} as const;

function proxied(
  title: string,
  figures: readonly Figure[],
  load: (scale: Scale) => readonly string[],
): Metric {
  return { ...AS_PROXY, title: `service proxy: ${title}`, figures, load };
}

/** The first try, as our proxy has it by default. */
const TRY_US = 250_000;

/** An endpoint that is dead, and how it is buried. */
interface Dead {
  readonly address: string;
  close(): void;
}

const DEATHS = {
  "refuses": () => Promise.resolve({ address: closedAddress(), close() {} }),
  "is silent": () => SilentTarget.open(),
} as const satisfies Record<string, () => Promise<Dead>>;

function beside(death: keyof typeof DEATHS): Metric {
  return {
    ...AS_PROXY,
    title: `service proxy: new connections, one of three endpoints ${death}`,
    figures: [
      more("per_s", "connections", "/s"),
      less("p50us", "p50", "µs"),
      less("p99us", "p99", "µs", {
        limit: death === "refuses" ? TRY_US / 5 : TRY_US,
      }),
      less("p999us", "p99.9", "µs"),
    ],
    async run(contender, { isQuick, seconds }) {
      const { workspace, site, name } = contender;
      const other = `127.0.0.1:${freePort()}`;
      const second = await startTarget(workspace, other);
      const dead: Dead = await DEATHS[death]();
      const targets = [site.target, other, dead.address];
      try {
        const config = { route: "proxy", targets } as const;
        const proxy = await startTunnel(name, site, config);
        // Longer than an endpoint is left out, so that it is tried again.
        const duration = `-d=${isQuick ? 4 : seconds + 8}s`;
        const load = ["-mode=conn", "-n=16", duration];
        return await contender.generate(proxy, load)
          .finally(() => proxy.stop());
      } finally {
        dead.close();
        await second.stop();
      }
    },
  };
}

function bulk(direction: "down" | "up"): Metric {
  return proxied(`bulk ${direction}, 1 connection`, [
    more("gbps", "speed", "Gbit/s", { bars: { N: 1 } }),
    less("cpu_s_per_GB", "CPU", "s/GB", { bars: { N: 1.2 } }),
    less("rssMB", "memory after", "MB"),
  ], (scale) => [`-mode=${direction}`, "-n=1", `-gb=${scale.bulkGb}`]);
}

export const PROXY_LOADS: Readonly<Record<string, Metric>> = {
  "proxy-down1": bulk("down"),
  "proxy-up1": bulk("up"),
  "proxy-rr64": proxied("request/response, 64 connections", [
    more("per_s", "requests", "/s", { bars: { N: 0.9 } }),
    less("cpu_ms_per_1k", "CPU", "ms/1k"),
    less("p50us", "p50", "µs"),
    less("p99us", "p99", "µs", { bars: { N: 1.2 } }),
  ], ({ seconds }) => ["-mode=rr", "-n=64", `-d=${seconds}s`]),
  "proxy-conn": proxied("new connections", [
    more("per_s", "connections", "/s", { bars: { N: 0.8 } }),
    less("cpu_ms_per_1k", "CPU", "ms/1k"),
    less("p50us", "p50", "µs"),
    less("p99us", "p99", "µs"),
  ], ({ seconds }) => ["-mode=conn", "-n=16", `-d=${seconds}s`]),
  "proxy-dead": beside("refuses"),
  "proxy-silent": beside("is silent"),
};
