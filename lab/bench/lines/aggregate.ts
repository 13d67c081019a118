/**
 * What 16 downloads get together over a long, lossy line. One TCP connection is
 * slowed by each loss, so it takes several links to go on.
 *
 * @module
 */

import type { Metric } from "../metric.ts";
import { lineMetric } from "./line_metric.ts";

/** Links of an agent that is not told how many. */
const LINKS_SHIPPED = 1;

function aggregate(links: number | undefined): Metric {
  const bars = links === 4 ? { K: 2 } : {};
  const moonshots = links === 4 ? { D: 0.9 } : {};
  const flag = links === undefined ? [] : [`--links=${links}`];
  return lineMetric({
    title: `bulk down, 16 connections, ${flag[0] ?? "links as shipped"}: ` +
      "500 Mbit/s, RTT 100 ms, 0.1 % lost",
    shape: { rttMs: 100, mbit: 500, loss: 0.001 },
    config: { agentFlags: flag, links: links ?? LINKS_SHIPPED },
    program: "linegen",
    load: ({ isQuick }) => ["bulk", "-n=16", `-mb=${isQuick ? 100 : 200}`],
    figures: [
      {
        key: "mbit",
        title: "together",
        unit: "Mbit/s",
        better: "more",
        bars,
        moonshots,
      },
      {
        key: "slowest_of_fastest",
        title: "slowest/fastest",
        unit: "",
        better: "more",
      },
    ],
  });
}

export const AGGREGATE_4_LINKS: Metric = aggregate(4);
export const AGGREGATE_DEFAULT: Metric = aggregate(undefined);
