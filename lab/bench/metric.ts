/**
 * What a metric is: a load, the numbers that it yields, and how good they have
 * to be beside which peer. Knows nothing of processes.
 *
 * @module
 */

import type { Contender } from "./contender.ts";
import type { Sample } from "./generator.ts";

/**
 * Who can be measured. `ours-server` is our server with Konnectivity's agent,
 * `ours-agent` our agent at Konnectivity's server, `direct` the target itself;
 * `gcp-…` are discovery servers and no tunnels.
 */
export const CONTENDER_NAMES = [
  "ours",
  "ours-server",
  "ours-agent",
  "konnectivity",
  "frp",
  "rathole",
  "nginx",
  "direct",
  "gcp-linear",
  "gcp-snapshot",
] as const;

export type ContenderName = typeof CONTENDER_NAMES[number];

/** The peers by the letters that the tables have room for. */
export const LETTERS = {
  K: "konnectivity",
  F: "frp",
  R: "rathole",
  N: "nginx",
  D: "direct",
  L: "gcp-linear",
  G: "gcp-snapshot",
} as const satisfies Record<string, ContenderName>;

export type Letter = keyof typeof LETTERS;

/**
 * How the generator gets in. Only Konnectivity and we have frontends; the
 * others forward a `port`, which stands in for CONNECT on a unix socket, and for
 * our `forward`. A service `proxy` stands before the target itself.
 */
export type Route =
  | "connect-uds"
  | "connect-tls"
  | "grpc-uds"
  | "forward"
  | "port"
  | "proxy";

/** Who has frontends. */
export const WITH_FRONTENDS: readonly ContenderName[] = [
  "ours",
  "ours-server",
  "ours-agent",
  "konnectivity",
];

/** How much load: enough for an assessment, or for a look. */
export interface Scale {
  readonly isQuick: boolean;
  /** In all, over all connections. */
  readonly bulkGb: number;
  readonly seconds: number;
  readonly idleConnections: number;
  /** How long memory may take to come back. */
  readonly settleSeconds: number;
  readonly restSeconds: number;
}

export const FULL: Scale = {
  isQuick: false,
  bulkGb: 2,
  seconds: 5,
  idleConnections: 10_000,
  settleSeconds: 60,
  restSeconds: 20,
};

export const QUICK: Scale = {
  isQuick: true,
  bulkGb: 0.5,
  seconds: 2,
  idleConnections: 500,
  settleSeconds: 5,
  restSeconds: 5,
};

/** Ratios to peers. */
export type Ratios = Readonly<Partial<Record<Letter, number>>>;

/** How good a number has to be. */
export interface Bound {
  /** The ratios that have to be reached; a peer without one is only shown. */
  readonly bars?: Ratios;
  /** What ours has to keep, whatever the peers have: a most, or a least. */
  readonly limit?: number;
  /** Says nothing about a peer, so no ratio is formed. */
  readonly isOursAlone?: boolean;
}

/** One number that a load yields. */
export interface Figure extends Bound {
  /** Name in the sample. */
  readonly key: string;
  readonly title: string;
  readonly unit: string;
  readonly better: "more" | "less";
}

/** What a table says of a figure, in this order. */
type Said = readonly [key: string, title: string, unit: string, bound?: Bound];

/** A number of which more is better. */
export function more(...[key, title, unit, bound]: Said): Figure {
  return { key, title, unit, better: "more", ...bound };
}

/** A number of which less is better. */
export function less(...[key, title, unit, bound]: Said): Figure {
  return { key, title, unit, better: "less", ...bound };
}

/** One kind of load. */
export interface Metric {
  readonly title: string;
  readonly figures: readonly Figure[];
  /** `connect-uds` if not given. */
  readonly route?: Route;
  /** A new tunnel for each run: memory must not remember the last. */
  readonly isFresh?: boolean;
  /**
   * Who can be measured with this. If not given: everybody on `connect-uds`,
   * else those {@linkcode WITH_FRONTENDS}.
   */
  readonly contenders?: readonly ContenderName[];
  /** Not part of a run without names, nor of `--quick`. */
  readonly isOnRequest?: boolean;
  /** Part of a run of `--quick` without names. */
  readonly isQuick?: boolean;
  /** Flags for the generator, which then is run through the tunnel. */
  load?(scale: Scale, name: ContenderName): readonly string[];
  /**
   * A way of running of its own, in place of {@linkcode load}: another place
   * for the tunnel, another generator. May use the contender's own tunnel, or
   * start one elsewhere with `startTunnel` in `tunnels/`.
   *
   * @throws {SpoiledRunError} When the run is no result.
   */
  run?(contender: Contender, scale: Scale): Promise<Sample>;
}

/** Who is measured with this metric. */
export function supports(metric: Metric, name: ContenderName): boolean {
  if (metric.contenders !== undefined) return metric.contenders.includes(name);
  if (name.startsWith("gcp-")) return false;
  return (metric.route ?? "connect-uds") === "connect-uds" ||
    WITH_FRONTENDS.includes(name);
}
