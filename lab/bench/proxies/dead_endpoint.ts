/**
 * New connections while one of three endpoints is dead: no client may notice by
 * more than one try that failed.
 *
 * A dead one either refuses or says nothing at all, as a machine does that has
 * lost its power. A run with a client that fails is spoiled.
 *
 * @module
 */

import { Child } from "../../../tests/support/program/child.ts";
import { findPeer } from "../../peers/peers.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import type { Contender } from "../contender.ts";
import type { Sample } from "../generator.ts";
import type { Figure, Metric } from "../metric.ts";
import { startProxy, TCP_PROXIES } from "./start_proxy.ts";

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
    if (signalled(late)) return undefined;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

function signalled({ signal }: AbortController): boolean {
  return signal.aborted;
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

function figures(quickest: Death): readonly Figure[] {
  return [
    { key: "per_s", title: "connections", unit: "/s", better: "more" },
    { key: "p50us", title: "p50", unit: "µs", better: "less" },
    {
      key: "p99us",
      title: "p99",
      unit: "µs",
      better: "less",
      limit: quickest === "refuses" ? TRY_US / 5 : TRY_US,
    },
    { key: "p999us", title: "p99.9", unit: "µs", better: "less" },
  ];
}

function dead(death: Death): Metric {
  return {
    title: `service proxy: new connections, one of three endpoints ${death}`,
    contenders: TCP_PROXIES,
    isOnRequest: true,
    figures: figures(death),
    // Longer than an endpoint is left out, so that it is tried again.
    run: (contender, { isQuick, seconds }) =>
      besideDead(contender, death, isQuick ? 4 : seconds + 8),
  };
}

export const DEAD_ENDPOINT_METRICS: Readonly<Record<string, Metric>> = {
  "proxy-dead": dead("refuses"),
  "proxy-silent": dead("is silent"),
};
