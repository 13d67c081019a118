/**
 * What is measured, with which load, and how good it has to be.
 *
 * @module
 */

/** How much load: enough for a judgement, or for a look. */
export interface Scale {
  readonly bulkGb: number;
  readonly seconds: number;
  readonly idleConnections: number;
  readonly restSeconds: number;
}

export const FULL: Scale = {
  bulkGb: 2,
  seconds: 5,
  idleConnections: 10_000,
  restSeconds: 20,
};

export const QUICK: Scale = {
  bulkGb: 0.5,
  seconds: 2,
  idleConnections: 500,
  restSeconds: 5,
};

/** One number that a load yields. */
export interface Figure {
  /** Name in the generator's JSON. */
  readonly key: string;
  readonly title: string;
  readonly unit: string;
  readonly better: "more" | "less";
  /** The ratio to the peer that has to be reached; none: shown only. */
  readonly bar?: number;
  /** What ours may have at most, whatever the peer has. */
  readonly limit?: number;
}

/** One kind of load. */
export interface Metric {
  readonly title: string;
  /** A new server and agent for each run: memory must not remember the last. */
  readonly isFresh?: boolean;
  /** Flags for the generator; none: nothing but waiting. */
  load?(scale: Scale): readonly string[];
  readonly figures: readonly Figure[];
}

const BULK: readonly Figure[] = [
  { key: "gbps", title: "speed", unit: "Gbit/s", better: "more", bar: 1.3 },
  {
    key: "cpu_s_per_GB",
    title: "CPU",
    unit: "s/GB",
    better: "less",
    bar: 0.65,
  },
];

function bulk(direction: "down" | "up", connections: number): Metric {
  return {
    title: `bulk ${direction}, ${connections} connection(s)`,
    load: (scale) => [
      `-mode=${direction}`,
      `-n=${connections}`,
      `-gb=${scale.bulkGb}`,
    ],
    figures: BULK,
  };
}

function atRest(
  key: string,
  title: string,
  unit: string,
  limit: number,
): Figure {
  return { key, title, unit, better: "less", limit };
}

export const METRICS: Readonly<Record<string, Metric>> = {
  down1: bulk("down", 1),
  up1: bulk("up", 1),
  down16: bulk("down", 16),
  up16: bulk("up", 16),
  rr1: {
    title: "request/response, 1 connection",
    load: (scale) => ["-mode=rr", "-n=1", `-d=${scale.seconds}s`],
    figures: [
      { key: "p50us", title: "p50", unit: "µs", better: "less", bar: 1.1 },
      { key: "p99us", title: "p99", unit: "µs", better: "less" },
      {
        key: "cpu_ms_per_1k",
        title: "CPU",
        unit: "ms/1k",
        better: "less",
      },
    ],
  },
  rr64: {
    title: "request/response, 64 connections",
    load: (scale) => ["-mode=rr", "-n=64", `-d=${scale.seconds}s`],
    figures: [
      {
        key: "per_s",
        title: "requests",
        unit: "/s",
        better: "more",
        bar: 1,
      },
      { key: "p50us", title: "p50", unit: "µs", better: "less" },
      { key: "p99us", title: "p99", unit: "µs", better: "less" },
      {
        key: "cpu_ms_per_1k",
        title: "CPU",
        unit: "ms/1k",
        better: "less",
      },
    ],
  },
  conn: {
    title: "new connections, 16 at a time",
    load: (scale) => ["-mode=conn", "-n=16", `-d=${scale.seconds}s`],
    figures: [
      {
        key: "per_s",
        title: "connections",
        unit: "/s",
        better: "more",
        bar: 1,
      },
      { key: "p99us", title: "p99", unit: "µs", better: "less" },
      {
        key: "cpu_ms_per_1k",
        title: "CPU",
        unit: "ms/1k",
        better: "less",
      },
    ],
  },
  idle: {
    title: "idle connections",
    isFresh: true,
    load: (scale) => ["-mode=idle", `-n=${scale.idleConnections}`],
    figures: [
      {
        key: "KB_per_conn",
        title: "memory",
        unit: "KB each",
        better: "less",
        bar: 0.5,
      },
      { key: "idle_cpu_pct", title: "CPU", unit: "%", better: "less" },
    ],
  },
  rest: {
    title: "one link and nothing to do",
    isFresh: true,
    figures: [
      atRest("serverRssMib", "server", "MiB", 90),
      atRest("agentRssMib", "agent", "MiB", 90),
      atRest("serverCpuPct", "server CPU", "%", 0.3),
      atRest("agentCpuPct", "agent CPU", "%", 0.3),
    ],
  },
};
