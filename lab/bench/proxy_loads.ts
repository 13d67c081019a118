/**
 * What the tunnel is measured with, through a service proxy instead: bulk,
 * requests, new connections, also while one of three endpoints is dead. A dead
 * one either refuses or says nothing at all, as a machine does that has lost its
 * power; a run with a client that fails is spoiled.
 *
 * @module
 */

import { Child } from "../../tests/support/program/child.ts";
import { findPeer } from "../../tests/support/program/peers.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import type { Contender } from "./contender.ts";
import { type Sample, SpoiledRunError } from "./generator.ts";
import {
  type ContenderName,
  type Figure,
  less,
  type Metric,
  more,
  type Scale,
} from "./metric.ts";
import { FileProxy } from "../peers/service_proxy.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import { forwarded, startNginxHop } from "./tunnels/forwarders.ts";
import type { Tunnel } from "./tunnels/start_tunnel.ts";

/** Who can be measured as a proxy. */
const PROXIES = ["ours", "nginx"] as const;

/** What a proxy is to do. */
interface ProxyConfig {
  readonly workspace: Workspace;
  /** `ip:port` each. */
  readonly targets: readonly string[];
}

/** A proxy, and where it is found. */
interface RunningProxy extends Tunnel {
  readonly port: number;
}

/**
 * Starts the proxy of `name`; it may need a moment until it listens.
 *
 * @throws {TypeError} For who is none.
 */
async function startProxy(
  name: ContenderName,
  { workspace, targets }: ProxyConfig,
): Promise<RunningProxy> {
  const port = freePort();
  const listen = `127.0.0.1:${port}`;
  const start = async () => {
    switch (name) {
      case "ours": {
        const config = { name: "bench", listen: port, endpoints: targets };
        return (await FileProxy.serving(workspace, [config])).child;
      }
      case "nginx":
        return await startNginxHop(workspace, { listen, targets });
      default:
        throw new TypeError(`${name} is no service proxy`);
    }
  };
  const child = await start();
  return { ...forwarded(listen, [child]), port };
}

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
    contenders: PROXIES,
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

/** The first try, as our proxy has it by default. */
const TRY_US = 250_000;

/** How long a connect may take before nobody is listening any more. */
const FULL_MS = 300;
const WAITING_MAX = 8_192;

type Death = "refuses" | "is silent";

/** What is dead, and how it is buried. */
interface Dead {
  readonly address: string;
  bury(): void;
}

/**
 * A listener that accepts nobody: once its queue is full, the kernel answers no
 * SYN any more.
 */
async function silent(): Promise<Dead> {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  const waiting: Deno.Conn[] = [];
  for (let isFull = false; !isFull;) {
    if (waiting.length > WAITING_MAX) throw new Error("its queue has no end");
    const conn = await connectWithin(port, FULL_MS);
    if (conn === undefined) isFull = true;
    else waiting.push(conn);
  }
  return {
    address: `127.0.0.1:${port}`,
    bury() {
      listener.close();
      for (const conn of waiting) conn.close();
    },
  };
}

async function connectWithin(
  port: number,
  ms: number,
): Promise<Deno.Conn | undefined> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), ms);
  try {
    const { signal } = late;
    return await Deno.connect({ hostname: "127.0.0.1", port, signal });
  } catch (error) {
    if (late.signal.aborted) return undefined;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

function refusing(): Promise<Dead> {
  const address = `127.0.0.1:${freePort()}`;
  return Promise.resolve({ address, bury() {} });
}

const DEATHS: Readonly<Record<Death, () => Promise<Dead>>> = {
  "refuses": refusing,
  "is silent": silent,
};

async function besideDead(
  contender: Contender,
  death: Death,
  seconds: number,
): Promise<Sample> {
  const { workspace, site } = contender;
  const other = `127.0.0.1:${freePort()}`;
  const target = new Child({
    name: "second target",
    command: [await findPeer("loadgen"), "target", other],
    logFile: workspace.path("target.log"),
  });
  const dead = await DEATHS[death]();
  const targets = [site.target, other, dead.address];
  const proxy = await startProxy(contender.name, { workspace, targets });
  try {
    await contender.generate(proxy, ["-mode=probe", "-d=30s"]);
    return await contender.generate(
      proxy,
      ["-mode=conn", "-n=16", `-d=${seconds}s`],
    );
  } finally {
    dead.bury();
    await Promise.all([proxy.stop(), target.stop()]);
  }
}

function beside(death: Death): Metric {
  return {
    title: `service proxy: new connections, one of three endpoints ${death}`,
    contenders: PROXIES,
    isOnRequest: true,
    figures: [
      more("per_s", "connections", "/s"),
      less("p50us", "p50", "µs"),
      less("p99us", "p99", "µs", {
        limit: death === "refuses" ? TRY_US / 5 : TRY_US,
      }),
      less("p999us", "p99.9", "µs"),
    ],
    // Longer than an endpoint is left out, so that it is tried again.
    run: (contender, { isQuick, seconds }) =>
      besideDead(contender, death, isQuick ? 4 : seconds + 8),
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
