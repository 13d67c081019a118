/**
 * Metrics that put a tunnel onto a long, narrow or lossy line: a new line and a
 * new tunnel for each run, so that neither a grown window nor the kernel's
 * memory of the path is handed from one run to the next.
 *
 * @module
 */

import { Child } from "../../../tests/support/program/child.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import { findPeer } from "../../../tests/support/program/peers.ts";
import { generate, type Sample } from "../generator.ts";
import {
  type ContenderName,
  type Figure,
  less,
  type Metric,
  more,
  type Scale,
} from "../metric.ts";
import { type Site, startTunnel } from "../tunnels/start_tunnel.ts";
import { COLD_START } from "./cold_start.ts";
import { sleep } from "../../../tests/support/watch/event_loop.ts";
import { startTarget } from "../../peers/load_target.ts";

const SERVER_HOST = "10.99.0.1";
const AGENT_HOST = "10.99.0.2";

/** Which end of the line: the server's or the agent's. */
type LineEnd = "server" | "agent";

/** What the line does to packets, the same each way. */
interface LineShape {
  readonly rttMs: number;
  /**
   * Behind it is a queue of one bandwidth-delay product (256 KiB at least)
   * that drops what does not fit; 0: no limit, and so no queue.
   */
  readonly mbit: number;
  /** Probability that a packet is lost. */
  readonly loss: number;
  /** The same seed loses the same packets, by number. */
  readonly seed: number;
}

/** What the line did, by direction. */
interface LineReport {
  readonly a_to_b: DirectionReport;
  readonly b_to_a: DirectionReport;
}

interface DirectionReport {
  readonly packets: number;
  readonly bytes: number;
  readonly lost: number;
  readonly dropped_at_full_queue: number;
  readonly longest_queue_bytes: number;
}

const NAMESPACES = { server: "nsA", agent: "nsB" } as const;

const CONNECT_TIMEOUT_MS = 20_000;
const POLL_MS = 50;
const SETTLE_MS = 600;

let lines = 0;

class Line {
  private constructor(
    private readonly emulator: Child,
    private readonly suffix: string,
  ) {}

  /** Sets the line up. */
  static async open(workspace: Workspace, shape: LineShape): Promise<Line> {
    const suffix = `${Deno.pid}${LETTERS[lines++ % LETTERS.length]}`;
    const emulator = new Child({
      name: "line",
      command: [
        await findPeer("wan"),
        `-name=${suffix}`,
        `-delay=${shape.rttMs / 2}ms`,
        `-mbit=${shape.mbit}`,
        `-loss=${shape.loss}`,
        `-seed=${shape.seed}`,
      ],
      logFile: workspace.path("line.log"),
    });
    await emulator.untilPrinted(/^ready$/m);
    return new Line(emulator, suffix);
  }

  /** The words that start a command at one end. */
  prefix(end: LineEnd): readonly string[] {
    // `ip` becomes the command, so the child's pid is the command's.
    return ["ip", "netns", "exec", `${NAMESPACES[end]}${this.suffix}`];
  }

  /**
   * Waits for so many TCP connections from the agent's end to the server's.
   *
   * @throws {Error} When there are fewer after 20 s.
   */
  async untilConnected(connections: number): Promise<void> {
    const [program, ...words] = this.prefix("server");
    const deadline = Date.now() + CONNECT_TIMEOUT_MS;
    for (;;) {
      const { stdout } = await new Deno.Command(program!, {
        args: [...words, "ss", "-tnH", "state", "established"],
      }).output();
      const seen = new TextDecoder().decode(stdout).split("\n")
        .filter((line) => line.includes(AGENT_HOST)).length;
      if (seen >= connections) break;
      if (Date.now() > deadline) {
        throw new Error(`Cannot see ${connections} links: there are ${seen}`);
      }
      await sleep(POLL_MS);
    }
    // A connection is no link yet: handshake and hellos take four round trips.
    await sleep(SETTLE_MS);
  }

  /** Takes the line down, after everything at its ends has been stopped. */
  async close(): Promise<LineReport> {
    await this.emulator.stop();
    const printed = await this.emulator.logTail();
    return JSON.parse(printed.trim().split("\n").at(-1)!) as LineReport;
  }
}

/** Names of devices have 15 characters at most, so one letter has to do. */
const LETTERS = "abcdefghijklmnopqrstuvwxyz";

const TARGET = `${AGENT_HOST}:7000`;

/** A metric over a line, without what is the same for all of them. */
interface LineMetric {
  readonly title: string;
  readonly figures: readonly Figure[];
  /** Without the seed, which changes from run to run. */
  readonly shape: Omit<LineShape, "seed">;
  /**
   * How the generator enters our tunnel: CONNECT on a unix socket if not given,
   * or a port of `tunnel forward`. The others have one way each.
   */
  readonly isForwarded?: boolean;
  /** For our programs alone. */
  readonly serverFlags?: readonly string[];
  readonly agentFlags?: readonly string[];
  /** Links that our agent is to have before anybody dials; 1 if not given. */
  readonly links?: number;
  readonly program: "loadgen" | "linegen";
  /** The generator's flags. */
  load(scale: Scale): readonly string[];
  /** Adds what is formed out of the round trip of the bare line. */
  withRtt?(sample: Sample, rttMs: number): Sample;
}

function onLine(metric: LineMetric): Metric {
  // All meet the same losses in the same order.
  const runs = new Map<ContenderName, number>();
  return {
    title: metric.title,
    figures: metric.figures,
    contenders: ["ours", "konnectivity", "frp", "direct"],
    isOnRequest: true,
    async run({ name, site: { workspace } }, scale) {
      const seed = (runs.get(name) ?? 0) + 1;
      runs.set(name, seed);
      const line = await Line.open(workspace, { ...metric.shape, seed });
      try {
        const sample = await measure(name, line, workspace, metric, scale);
        return { ...sample, ...whatLineDid(await line.close()) };
      } catch (error) {
        await line.close();
        throw error;
      }
    },
  };
}

async function measure(
  name: ContenderName,
  line: Line,
  workspace: Workspace,
  metric: LineMetric,
  scale: Scale,
): Promise<Sample> {
  const pieces: Child[] = [];
  const prefix = line.prefix("server");
  try {
    const way = await start(name, line, workspace, metric, pieces);
    const common = { workspace, prefix, pieces };
    const flags = [...metric.load(scale), ...way];
    const sample = await generate({
      ...{ ...common, program: metric.program, flags },
    });
    if (metric.withRtt === undefined) return sample;
    const bare = await generate({
      ...common,
      flags: ["-mode=rr", "-n=1", "-d=1s", `-addr=${TARGET}`],
    });
    return metric.withRtt(sample, bare["p50us"]! / 1000);
  } finally {
    // By force: over a line that is going away, and with downloads that are not
    // read any more, a polite end would take its time-outs.
    await Promise.all(pieces.map((piece) => piece.stop("SIGKILL")));
  }
}

/**
 * The server and the generator at one end, the agent and the target at the
 * other; adds to `pieces` what is to be stopped.
 *
 * @returns What the generator is told, to get through.
 */
async function start(
  name: ContenderName,
  line: Line,
  workspace: Workspace,
  { isForwarded, links, ...flags }: LineMetric,
  pieces: Child[],
): Promise<readonly string[]> {
  const [serverSide, agentSide] = [line.prefix("server"), line.prefix("agent")];
  pieces.push(await startTarget(workspace, TARGET, agentSide));
  const site: Site = {
    ...{ workspace, target: TARGET, serverHost: SERVER_HOST },
    ...{ serverSide, agentSide },
  };
  const isOurs = name === "ours";
  const tunnel = await startTunnel(name, site, {
    route: isOurs && isForwarded ? "forward" : "connect-uds",
    serverFlags: isOurs ? flags.serverFlags ?? [] : [],
    agentFlags: isOurs ? flags.agentFlags ?? [] : [],
  });
  pieces.push(...tunnel.pieces);
  if (isOurs) await line.untilConnected(links ?? 1);
  return tunnel.flags;
}

/** Both directions in one, for the record of a run. */
function whatLineDid({ a_to_b, b_to_a }: LineReport): Sample {
  return {
    lineLost: a_to_b.lost + b_to_a.lost,
    lineDropped: a_to_b.dropped_at_full_queue + b_to_a.dropped_at_full_queue,
    lineQueueBytes: Math.max(
      a_to_b.longest_queue_bytes,
      b_to_a.longest_queue_bytes,
    ),
  };
}

/**
 * A tunnel that lets bulk queue in its own windows makes everybody wait for the
 * queue.
 */
function besideDownloads(links: number | undefined, bulkBar: number): Metric {
  const flags = links === undefined ? [] : [`--links=${links}`];
  return onLine({
    title: `small request beside 4 downloads, ` +
      `${flags[0] ?? "links as shipped"}: 100 Mbit/s, RTT 50 ms, 0.1 % lost`,
    shape: { rttMs: 50, mbit: 100, loss: 0.001 },
    agentFlags: flags,
    links: links ?? 1,
    program: "linegen",
    load: ({ isQuick }) => [
      ...["beside", "-n=4", "-warm=3s", `-d=${isQuick ? 5 : 10}s`],
      ...["-req=128", "-resp=1024"],
    ],
    figures: [
      less("p50ms", "p50", "ms", { bars: { D: 1.5 } }),
      less("p99ms", "p99", "ms"),
      // Waiting less is no feat for a tunnel that lets bulk starve.
      more("bulkMbit", "downloads", "Mbit/s", { bars: { D: bulkBar } }),
    ],
  });
}

const AGGREGATE_BARS: Readonly<Record<number, NonNullable<Figure["bars"]>>> = {
  4: { K: 2 },
  8: { D: 0.9 },
};

/**
 * What 16 downloads get together. One TCP connection is slowed by each loss, so
 * it takes several links to go on.
 */
function aggregate(links: number | undefined): Metric {
  const flags = links === undefined ? [] : [`--links=${links}`];
  return onLine({
    title: `bulk down, 16 connections, ${flags[0] ?? "links as shipped"}: ` +
      "500 Mbit/s, RTT 100 ms, 0.1 % lost",
    shape: { rttMs: 100, mbit: 500, loss: 0.001 },
    agentFlags: flags,
    links: links ?? 1,
    program: "linegen",
    load: ({ isQuick }) => ["bulk", "-n=16", `-mb=${isQuick ? 100 : 200}`],
    figures: [
      more("mbit", "together", "Mbit/s", {
        bars: AGGREGATE_BARS[links ?? 0] ?? {},
      }),
      more("slowest_of_fastest", "slowest/fastest", ""),
    ],
  });
}

/**
 * How soon a single connection fills the line, start included: windows have to
 * grow as fast as the kernel's congestion window does. 0.1 GB is long enough to
 * leave the start behind, short enough to feel it: 1.6 s.
 */
function oneConnection(direction: "down" | "up"): Metric {
  return onLine({
    title: `bulk ${direction}, 1 connection: 500 Mbit/s, RTT 50 ms, new link`,
    shape: { rttMs: 50, mbit: 500, loss: 0 },
    program: "loadgen",
    load: () => [`-mode=${direction}`, "-n=1", "-gb=0.1"],
    figures: [more("gbps", "speed", "Gbit/s", { bars: { D: 0.9 } })],
  });
}

/**
 * A new connection and its first answer, in round trips: what a caller beside
 * the server waits for.
 */
function firstAnswer(
  title: string,
  limit: number,
  config: Pick<LineMetric, "isForwarded" | "serverFlags"> = {},
): Metric {
  return onLine({
    ...config,
    title: `new connection and first answer, ${title}: RTT 50 ms`,
    shape: { rttMs: 50, mbit: 0, loss: 0 },
    program: "loadgen",
    load: () => ["-mode=conn", "-n=1", "-d=3s"],
    withRtt(sample, rttMs) {
      const rtts = (key: string) => sample[key]! / 1000 / rttMs;
      const [p50rtts, p99rtts] = [rtts("p50us"), rtts("p99us")];
      return { ...sample, rttMs, p50rtts, p99rtts };
    },
    figures: [
      less("p50rtts", "p50", "RTT", { limit }),
      less("p99rtts", "p99", "RTT"),
    ],
  });
}

export const LINE_METRICS: Readonly<Record<string, Metric>> = {
  "line-small": besideDownloads(undefined, 0.85),
  "line-small-4": besideDownloads(4, 0.9),
  "line-bulk16": aggregate(4),
  "line-bulk16-8": aggregate(8),
  "line-bulk16-default": aggregate(undefined),
  "line-down1": oneConnection("down"),
  "line-up1": oneConnection("up"),
  // `tunnel forward` waits for the caller's first bytes, and they go along.
  "line-first-forward": firstAnswer("tunnel forward (gRPC, early data)", 1.1, {
    isForwarded: true,
  }),
  "line-first-connect": firstAnswer("CONNECT", 2.1),
  "line-first-early": firstAnswer("CONNECT with --connect-early-200", 2.1, {
    serverFlags: ["--connect-early-200"],
  }),
  "cold": COLD_START,
};
