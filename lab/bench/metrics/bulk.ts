/**
 * Many bytes in one direction, over one and over many connections.
 *
 * @module
 */

import type { Figure, Metric, Ratios } from "../metric.ts";

type Direction = "down" | "up";

function speed(bars: Ratios, moonshots: Ratios): Figure {
  return {
    key: "gbps",
    title: "speed",
    unit: "Gbit/s",
    better: "more",
    bars,
    moonshots,
  };
}

function cpu(bars: Ratios, moonshots: Ratios): Figure {
  return {
    key: "cpu_s_per_GB",
    title: "CPU",
    unit: "s/GB",
    better: "less",
    bars,
    moonshots,
  };
}

/** Of all processes of the tunnel, as the last byte arrives. */
const MEMORY: Figure = {
  key: "rssMB",
  title: "memory after",
  unit: "MB",
  better: "less",
  limit: 200,
};

/** The same, when the tunnel has had nothing to do for {@linkcode REST_S}. */
const MEMORY_LATER: Figure = {
  key: "rss_later_MB",
  title: "memory at rest",
  unit: "MB",
  better: "less",
  limit: 200,
};

const REST_S = 5;

/** How evenly the connections shared the tunnel. */
const EVENNESS: Figure = {
  key: "slowest_fastest",
  title: "slowest/fastest",
  unit: "",
  better: "more",
  limit: 0.8,
  moonshotLimit: 0.9,
};

function bulk(
  direction: Direction,
  connections: number,
  figures: readonly Figure[],
): Metric {
  return {
    title: `bulk ${direction}, ${connections} connection${
      connections === 1 ? "" : "s"
    }`,
    load: (scale) => [
      `-mode=${direction}`,
      `-n=${connections}`,
      `-gb=${scale.bulkGb}`,
    ],
    isQuick: connections === 1,
    figures,
  };
}

function many(direction: Direction, connections: number): Metric {
  return bulk(direction, connections, [
    speed({ K: 1.8 }, { K: 2.4, F: 1.2 }),
    cpu({ K: 0.5 }, { K: 0.35 }),
    EVENNESS,
    MEMORY,
  ]);
}

export const BULK_METRICS: Readonly<Record<string, Metric>> = {
  down1: bulk("down", 1, [
    speed({ K: 1.8, F: 1.1 }, { K: 2.4, F: 1.3 }),
    cpu({ K: 0.5, F: 0.9 }, { K: 0.35 }),
    MEMORY,
  ]),
  up1: bulk("up", 1, [
    speed({ K: 1.6 }, { K: 2.4, F: 1.3 }),
    cpu({ K: 0.5 }, { K: 0.35 }),
    MEMORY,
  ]),
  "bulk-memory": {
    title: `memory ${REST_S} s after bulk, 64 connections down`,
    load: ({ bulkGb }) => [
      "-mode=down",
      "-n=64",
      `-gb=${bulkGb}`,
      `-settle=${REST_S}s`,
    ],
    isQuick: false,
    figures: [MEMORY, MEMORY_LATER],
  },
  down16: many("down", 16),
  up16: many("up", 16),
  down64: many("down", 64),
  up64: many("up", 64),
};
