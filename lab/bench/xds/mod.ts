/**
 * Metrics of discovery beside the reference on go-control-plane, with 1,000
 * clients, 200 clusters and 3 endpoints each: its cache that sends what changed
 * where one endpoint changes, the one that most have where everything does.
 *
 * @module
 */

import type { Figure, Metric, Ratios } from "../metric.ts";
import { DISCOVERY_SERVERS, overBoth } from "./load.ts";

const contenders = DISCOVERY_SERVERS;

/** No worse than these; half of it would be a feat. */
function asGoodAs(letters: readonly (keyof Ratios)[]) {
  const all = (ratio: number): Ratios =>
    Object.fromEntries(letters.map((letter) => [letter, ratio]));
  return { bars: all(1), moonshots: all(0.5) };
}

function figuresBeside(...letters: readonly (keyof Ratios)[]): Figure[] {
  const bound = asGoodAs(letters);
  const less = { better: "less", ...bound } as const;
  return [
    { key: "last_ms", title: "last client", unit: "ms", ...less },
    { key: "p50_ms", title: "p50", unit: "ms", better: "less" },
    { key: "cpu_s", title: "CPU", unit: "s each", ...less },
    { key: "mb", title: "sent", unit: "MB each", better: "less" },
    { key: "rss_mib", title: "memory, most", unit: "MiB", ...less },
  ];
}

/** A window of 50 ms allows 20 responses a second. */
const RESPONSES_PER_SECOND_MAX = 20;

const FLAP_FIGURES: readonly Figure[] = [
  {
    key: "most_responses_per_second",
    title: "most responses",
    unit: "/s of one",
    better: "less",
    limit: RESPONSES_PER_SECOND_MAX,
  },
  {
    key: "last_ms",
    title: "last change",
    unit: "ms",
    better: "less",
    limit: 2_000,
  },
  { key: "cpu_s", title: "CPU", unit: "s", better: "less" },
  { key: "rss_mib", title: "memory, most", unit: "MiB", better: "less" },
];

export const XDS_METRICS: Readonly<Record<string, Metric>> = {
  ...overBoth("xds-connect", {
    title: "all connect and have everything",
    contenders,
    figures: figuresBeside("L", "G"),
  }, () => ({ phase: "connect" })),
  ...overBoth(
    "xds-one-endpoint",
    {
      title: "one endpoint changes",
      contenders,
      figures: figuresBeside("L"),
    },
    (isQuick) => ({ phase: "one", rounds: isQuick ? 8 : 20 }),
  ),
  ...overBoth(
    "xds-full-push",
    {
      title: "every cluster changes",
      contenders,
      figures: figuresBeside("G"),
    },
    (isQuick) => ({ phase: "full", rounds: isQuick ? 3 : 8 }),
  ),
  ...overBoth(
    "xds-flaps",
    { title: "100 changes a second", contenders, figures: FLAP_FIGURES },
    (isQuick) => ({ phase: "flaps", flapSeconds: isQuick ? 5 : 60 }),
  ),
  ...overBoth(
    "xds-flaps-few",
    {
      title: "100 changes a second, 10 clients",
      contenders,
      figures: FLAP_FIGURES,
    },
    (isQuick) => ({
      ...{ phase: "flaps", streams: 10, flapSeconds: isQuick ? 5 : 20 },
    }),
  ),
  ...overBoth(
    "xds-stopped",
    {
      title: "every cluster changes, beside 200 that read nothing any more",
      contenders,
      figures: figuresBeside("G"),
    },
    (isQuick) => ({ phase: "full", rounds: isQuick ? 5 : 20, slow: 200 }),
  ),
  ...overBoth(
    "xds-large",
    {
      title: "one of 10,000 endpoints of one cluster changes, 10 clients",
      contenders,
      figures: [
        {
          key: "last_ms",
          title: "last client",
          unit: "ms",
          better: "less",
          limit: 1_000,
        },
        { key: "cpu_s", title: "CPU", unit: "s each", better: "less" },
        { key: "rss_mib", title: "memory, most", unit: "MiB", better: "less" },
      ],
    },
    () => ({
      ...{ phase: "one", streams: 10, clusters: 1, endpoints: 10_000 },
      rounds: 5,
    }),
  ),
};
