/**
 * New connections, 16 at a time, each with one request and one answer.
 *
 * @module
 */

import type { Figure, Metric, Ratios } from "../metric.ts";

function figures(
  speed: readonly [bars: Ratios, moonshots: Ratios],
  cpu: readonly [bars: Ratios, moonshots: Ratios],
): Figure[] {
  return [
    {
      key: "per_s",
      title: "connections",
      unit: "/s",
      better: "more",
      bars: speed[0],
      moonshots: speed[1],
    },
    {
      key: "cpu_ms_per_1k",
      title: "CPU",
      unit: "ms/1k",
      better: "less",
      bars: cpu[0],
      moonshots: cpu[1],
    },
    { key: "p50us", title: "p50", unit: "µs", better: "less" },
    { key: "p99us", title: "p99", unit: "µs", better: "less" },
  ];
}

const load: Metric["load"] = (scale) => [
  "-mode=conn",
  "-n=16",
  `-d=${scale.seconds}s`,
];

export const CONNECTION_METRICS: Readonly<Record<string, Metric>> = {
  conn: {
    title: "new connections, CONNECT on a unix socket",
    load,
    isQuick: true,
    figures: figures(
      [{ K: 1.15 }, { K: 1.5 }],
      [{ K: 0.7 }, { K: 0.55 }],
    ),
  },
  "conn-grpc": {
    title: "new connections, gRPC on a unix socket, dialed for each",
    route: "grpc-uds",
    load,
    isQuick: true,
    figures: figures([{ K: 1 }, {}], [{}, {}]),
  },
  "conn-tls": {
    title: "new connections, CONNECT over mutual TLS",
    route: "connect-tls",
    load,
    figures: figures([{}, { K: 1 }], [{}, {}]),
  },
};
