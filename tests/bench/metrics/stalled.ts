/**
 * One quick connection beside connections that nobody reads.
 *
 * The generator measures without and with them, alternately, in one run: the
 * figure is a ratio of ours to ours. Konnectivity cannot take part, one
 * stalled reader stops it.
 *
 * @module
 */

import type { Figure, Metric, Road } from "../metric.ts";

const STALLED = [1, 8, 64] as const;
const SIDES = ["client", "target"] as const;
const ROADS = { connect: "connect-uds", grpc: "grpc-uds" } as const;

/**
 * What a stalled conduit may pin at both ends together: the window that it
 * begins with (64 KiB, it grows only while octets are consumed) and 64 KiB.
 */
const PINNED_KIB_MAX = 128;

function figures(connections: number): Figure[] {
  const ratio: Figure = {
    key: "stall_ratio",
    title: "p99 with/without",
    unit: "x",
    better: "less",
    limit: 1.2,
    moonshotLimit: 1.05,
    isOursAlone: true,
  };
  const shown = (key: string, title: string): Figure => ({
    key,
    title,
    unit: "µs",
    better: "less",
    isOursAlone: true,
  });
  const pinned: Figure = {
    key: "KB_per_stalled",
    title: "memory pinned",
    unit: "KB each",
    better: "less",
    // Among few connections the growth of everything else drowns it.
    ...(connections >= 64 ? { limit: PINNED_KIB_MAX } : {}),
    isOursAlone: true,
  };
  return [
    ratio,
    shown("p99us", "p99 with"),
    shown("free_p99us", "p99 without"),
    pinned,
  ];
}

function stalled(
  road: Road,
  side: typeof SIDES[number],
  connections: number,
): Metric {
  return {
    title: `request/response beside ${connections} stalled at the ${side}, ` +
      (road === "grpc-uds" ? "gRPC" : "CONNECT"),
    road,
    contenders: ["ours"],
    load: (scale) => [
      "-mode=rr",
      "-n=1",
      `-d=${scale.seconds}s`,
      `-stall=${connections}`,
      `-stall-side=${side}`,
    ],
    figures: figures(connections),
  };
}

/** `stall-connect-client-8` and its like. */
export const STALLED_METRICS: Readonly<Record<string, Metric>> = Object
  .fromEntries(
    Object.entries(ROADS).flatMap(([road, way]) =>
      SIDES.flatMap((side) =>
        STALLED.map((connections) =>
          [
            `stall-${road}-${side}-${connections}`,
            stalled(way, side, connections),
          ] as const
        )
      )
    ),
  );
