/**
 * What a small request waits for while downloads fill a narrow line. A tunnel
 * that lets bulk queue in its own windows makes everybody wait for the queue.
 *
 * @module
 */

import type { Metric } from "../metric.ts";
import { lineMetric } from "./line_metric.ts";

export const SMALL_BESIDE_BULK: Metric = lineMetric({
  title: "small request beside 4 downloads: 100 Mbit/s, RTT 50 ms, 0.1 % lost",
  shape: { rttMs: 50, mbit: 100, loss: 0.001 },
  program: "linegen",
  load: ({ isQuick }) => [
    ...["beside", "-n=4", "-warm=3s", `-d=${isQuick ? 5 : 10}s`],
    ...["-req=128", "-resp=1024"],
  ],
  figures: [
    {
      key: "p50ms",
      title: "p50",
      unit: "ms",
      better: "less",
      bars: { D: 1.5 },
      moonshots: { D: 1.2 },
    },
    { key: "p99ms", title: "p99", unit: "ms", better: "less" },
    // Waiting less is no feat for who lets bulk starve.
    {
      key: "bulkMbit",
      title: "downloads",
      unit: "Mbit/s",
      better: "more",
      bars: { D: 0.85 },
    },
  ],
});
