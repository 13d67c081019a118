/**
 * Metrics that put a tunnel onto a line: a new line and a new tunnel for each
 * run, so that neither a grown window nor the kernel's memory of the path is
 * handed from one run to the next.
 *
 * @module
 */

import type { PeerName } from "../../peers/peers.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import { generate, type Sample } from "../generator.ts";
import type { ContenderName, Figure, Metric, Scale } from "../metric.ts";
import { Line, type LineReport, type LineShape } from "./line.ts";
import {
  DIRECT_WAY,
  type OnLineConfig,
  startOnLine,
  type TunnelOnLine,
} from "./tunnel_on_line.ts";

/** Everybody who is put onto a line. */
export const TRAVELLERS: readonly ContenderName[] = [
  "ours",
  "konnectivity",
  "frp",
  "chisel",
  "direct",
];

/** A metric over a line, without what is the same for all of them. */
export interface LineMetric {
  readonly title: string;
  readonly figures: readonly Figure[];
  /** Without the seed, which changes from run to run. */
  readonly shape: Omit<LineShape, "seed">;
  /** For our tunnel: CONNECT and a link if not given. */
  readonly config?: Partial<OnLineConfig>;
  readonly program: PeerName & ("loadgen" | "linegen");
  /** The generator's flags. */
  load(scale: Scale): readonly string[];
  /** Adds what is formed out of the round trip of the bare line. */
  withRtt?(sample: Sample, rttMs: number): Sample;
}

/** Turns `metric` into one that the bench can run. */
export function lineMetric(metric: LineMetric): Metric {
  const seedOf = seeds();
  return {
    title: metric.title,
    figures: metric.figures,
    contenders: TRAVELLERS,
    isOnRequest: true,
    run: ({ name, site: { workspace } }, scale) =>
      runOverLine({ name, workspace, scale, seed: seedOf(name) }, metric),
  };
}

/** 1, 2, 3 … for each name: all meet the same losses in the same order. */
export function seeds(): (name: string) => number {
  const runs = new Map<string, number>();
  return (name) => {
    const seed = (runs.get(name) ?? 0) + 1;
    runs.set(name, seed);
    return seed;
  };
}

interface LineRun {
  readonly name: ContenderName;
  readonly workspace: Workspace;
  readonly scale: Scale;
  readonly seed: number;
}

async function runOverLine(
  { name, workspace, scale, seed }: LineRun,
  metric: LineMetric,
): Promise<Sample> {
  const config: OnLineConfig = {
    ...{ entrance: "connect", serverFlags: [], agentFlags: [], links: 1 },
    ...metric.config,
  };
  const line = await Line.open(workspace, { ...metric.shape, seed });
  let sample: Sample;
  try {
    const tunnel = await startOnLine(name, line, workspace, config);
    try {
      sample = await measure(line, tunnel, workspace, metric, scale);
    } finally {
      await tunnel.stop();
    }
  } catch (error) {
    await line.close();
    throw error;
  }
  return { ...sample, ...whatLineDid(await line.close()) };
}

async function measure(
  line: Line,
  tunnel: TunnelOnLine,
  workspace: Workspace,
  { program, load, withRtt }: LineMetric,
  scale: Scale,
): Promise<Sample> {
  const { pieces, way } = tunnel;
  const common = { workspace, prefix: line.prefix("server"), pieces };
  const flags = [...load(scale), ...way];
  const sample = await generate({ ...common, program, flags });
  if (withRtt === undefined) return sample;
  const bare = await generate({
    ...common,
    program: "loadgen",
    flags: ["-mode=rr", "-n=1", "-d=1s", ...DIRECT_WAY],
  });
  return withRtt(sample, bare["p50us"]! / 1000);
}

/** Both directions in one, for the record of a run. */
export function whatLineDid({ a_to_b, b_to_a }: LineReport): Sample {
  return {
    lineLost: a_to_b.lost + b_to_a.lost,
    lineDropped: a_to_b.dropped_at_full_queue + b_to_a.dropped_at_full_queue,
    lineQueueBytes: Math.max(
      a_to_b.longest_queue_bytes,
      b_to_a.longest_queue_bytes,
    ),
  };
}
