/**
 * A new connection and its first answer over a long line, in round trips: what
 * a caller beside the server waits for.
 *
 * @module
 */

import type { Sample } from "../generator.ts";
import type { Metric } from "../metric.ts";
import { lineMetric } from "./line_metric.ts";
import type { Entrance } from "./tunnel_on_line.ts";

interface FirstAnswer {
  readonly entrance: Entrance;
  readonly title: string;
  /** Round trips at most. */
  readonly limit: number;
  readonly moonshotLimit?: number;
  readonly serverFlags?: readonly string[];
}

function firstAnswer(
  { entrance, title, limit, moonshotLimit, serverFlags = [] }: FirstAnswer,
): Metric {
  return lineMetric({
    title: `new connection and first answer, ${title}: RTT 50 ms`,
    shape: { rttMs: 50, mbit: 0, loss: 0 },
    config: { entrance, serverFlags },
    program: "loadgen",
    load: () => ["-mode=conn", "-n=1", "-d=3s"],
    withRtt: inRoundTrips,
    figures: [
      {
        key: "p50rtts",
        title: "p50",
        unit: "RTT",
        better: "less",
        limit,
        ...(moonshotLimit === undefined ? {} : { moonshotLimit }),
      },
      { key: "p99rtts", title: "p99", unit: "RTT", better: "less" },
    ],
  });
}

/** The generator's microseconds, in round trips of the bare line. */
export function inRoundTrips(sample: Sample, rttMs: number): Sample {
  const rtts = (key: string) => sample[key]! / 1000 / rttMs;
  return { ...sample, rttMs, p50rtts: rtts("p50us"), p99rtts: rtts("p99us") };
}

/** `tunnel forward` waits for the caller's first bytes, and they go along. */
export const FIRST_ANSWER_FORWARD: Metric = firstAnswer({
  entrance: "forward",
  title: "tunnel forward (gRPC, early data)",
  limit: 1.1,
});

export const FIRST_ANSWER_CONNECT: Metric = firstAnswer({
  entrance: "connect",
  title: "CONNECT",
  limit: 2.1,
});

export const FIRST_ANSWER_EARLY_200: Metric = firstAnswer({
  entrance: "connect",
  title: "CONNECT with --connect-early-200",
  limit: 2.1,
  moonshotLimit: 1.1,
  serverFlags: ["--connect-early-200"],
});
