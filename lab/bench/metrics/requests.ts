/**
 * Small requests, each answered before the next: 128 bytes there, 1,024 back.
 *
 * @module
 */

import type { Figure, Metric, Ratios } from "../metric.ts";

function latency(
  key: "p50us" | "p99us" | "p999us",
  bars: Ratios = {},
  moonshots: Ratios = {},
): Figure {
  const title = { p50us: "p50", p99us: "p99", p999us: "p99.9" }[key];
  return { key, title, unit: "µs", better: "less", bars, moonshots };
}

function cpu(bars: Ratios, moonshots: Ratios): Figure {
  return {
    key: "cpu_ms_per_1k",
    title: "CPU",
    unit: "ms/1k",
    better: "less",
    bars,
    moonshots,
  };
}

function many(connections: number): Metric {
  return {
    title: `request/response, ${connections} connections`,
    load: (scale) => [
      "-mode=rr",
      `-n=${connections}`,
      `-d=${scale.seconds}s`,
    ],
    isQuick: connections === 64,
    figures: [
      {
        key: "per_s",
        title: "requests",
        unit: "/s",
        better: "more",
        bars: { K: 1.2 },
        moonshots: { K: 1.5, N: 1.2 },
      },
      cpu({ K: 0.65 }, { K: 0.5 }),
      latency("p50us"),
      latency("p99us", { K: 0.9 }),
    ],
  };
}

export const REQUEST_METRICS: Readonly<Record<string, Metric>> = {
  rr1: {
    title: "request/response, 1 connection",
    load: (scale) => ["-mode=rr", "-n=1", `-d=${scale.seconds}s`],
    isQuick: true,
    figures: [
      latency("p50us", { K: 0.95 }, { K: 0.8 }),
      latency("p99us", { K: 1 }, { K: 0.8 }),
      { ...latency("p999us"), limit: 5_000 },
      cpu({ K: 0.7 }, { K: 0.5 }),
    ],
  },
  rr64: many(64),
  rr512: many(512),
};
