/**
 * One quick connection beside connections that nobody reads.
 *
 * The generator measures without and with them, alternately, in one run: the
 * figure is a ratio of ours to ours. Konnectivity cannot take part, one
 * stalled reader stops it.
 *
 * @module
 */

import type { Figure, Metric, Route } from "../metric.ts";

const STALLED = [1, 8, 64] as const;
const SIDES = ["client", "target"] as const;
const ROUTES = { connect: "connect-uds", grpc: "grpc-uds" } as const;

/**
 * What a stalled conduit may pin at both ends together: the window that it
 * begins with (64 KiB, it grows only while bytes are consumed) and 64 KiB.
 */
const PINNED_KIB_MAX = 128;
/** Many, since what else grows meanwhile is shared out among them. */
const PINNED = 512;

function latency(key: string, title: string): Figure {
  return { key, title, unit: "µs", better: "less", isOursAlone: true };
}

const FIGURES: readonly Figure[] = [
  {
    key: "stall_ratio",
    title: "p99 with/without",
    unit: "x",
    better: "less",
    limit: 1.2,
    moonshotLimit: 1.05,
    isOursAlone: true,
  },
  latency("p99us", "p99 with"),
  latency("free_p99us", "p99 without"),
];

function stalled(
  route: Route,
  side: typeof SIDES[number],
  connections: number,
): Metric {
  return {
    title: `request/response beside ${connections} stalled at the ${side}, ` +
      inWords(route),
    route,
    contenders: ["ours"],
    load: (scale) => [
      "-mode=rr",
      "-n=1",
      `-d=${scale.seconds}s`,
      `-stall=${connections}`,
      `-stall-side=${side}`,
    ],
    figures: FIGURES,
  };
}

function pinned(route: Route, side: typeof SIDES[number]): Metric {
  return {
    title: `memory of connections stalled at the ${side}, ${inWords(route)}`,
    route,
    contenders: ["ours"],
    isFresh: true,
    load: () => ["-mode=pinned", `-n=${PINNED}`, `-stall-side=${side}`],
    figures: [
      {
        key: "KB_per_stalled",
        title: "pinned",
        unit: "KB each",
        better: "less",
        limit: PINNED_KIB_MAX,
        isOursAlone: true,
      },
    ],
  };
}

function inWords(route: Route): string {
  return route === "grpc-uds" ? "gRPC" : "CONNECT";
}

const PLACES = Object.entries(ROUTES).flatMap(([name, route]) =>
  SIDES.map((side) => ({ place: `${name}-${side}`, route, side }))
);

/** `stall-connect-client-8`, `pinned-grpc-target` and their like. */
export const STALLED_METRICS: Readonly<Record<string, Metric>> = Object
  .fromEntries([
    ...PLACES.flatMap(({ place, route, side }) =>
      STALLED.map((connections) => [
        `stall-${place}-${connections}`,
        stalled(route, side, connections),
      ])
    ),
    ...PLACES.map(({ place, route, side }) => [
      `pinned-${place}`,
      pinned(route, side),
    ]),
  ]);
