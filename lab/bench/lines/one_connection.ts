/**
 * How soon a single connection fills a long line, start included: windows have
 * to grow as fast as the kernel's congestion window does.
 *
 * @module
 */

import type { Metric } from "../metric.ts";
import { lineMetric } from "./line_metric.ts";

/** Long enough to leave the start behind, short enough to feel it: 1.6 s. */
const GB = 0.1;

function oneConnection(direction: "down" | "up"): Metric {
  return lineMetric({
    title: `bulk ${direction}, 1 connection: 500 Mbit/s, RTT 50 ms, new link`,
    shape: { rttMs: 50, mbit: 500, loss: 0 },
    program: "loadgen",
    load: () => [`-mode=${direction}`, "-n=1", `-gb=${GB}`],
    figures: [{
      key: "gbps",
      title: "speed",
      unit: "Gbit/s",
      better: "more",
      bars: { D: 0.9 },
      moonshots: { D: 0.97 },
    }],
  });
}

export const ONE_CONNECTION_DOWN: Metric = oneConnection("down");
export const ONE_CONNECTION_UP: Metric = oneConnection("up");
