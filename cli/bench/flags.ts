/**
 * Flags of `bench`, and what they mean together.
 *
 * @module
 */

import type { BenchPlan } from "./report.ts";
import { UsageError } from "../flags/usage_error.ts";
import {
  formatHostPort,
  type HostPort,
  parseHostPort,
} from "../flags/addresses.ts";
import { flag, inGroup } from "../flags/flag.ts";
import { formatGoDuration } from "../../platform/documents/go_duration.ts";
import type { FlagReading } from "../flags/read_flags.ts";
import { ROUTE_FLAGS } from "../flags/route_flags.ts";

const BENCH = "The measurement";

/** A bench connection lasts 120 s at an agent; this leaves time to make it. */
const DURATION_MS_MAX = 60_000;

const MEASURES = ["rtt", "down", "up", "new"] as const;

/** In the order in which the help shows them. */
export const BENCH_FLAGS = {
  ...inGroup(BENCH, {
    "measure": flag.choices(MEASURES, MEASURES, {
      help: "What to measure: round trips, throughput from the agent and to " +
        "it, new connections.",
    }),
    "connections": flag.count(16, 1, 64, {
      help: "Number of connections: throughput is measured with one and with " +
        "this many; new ones are made this many at a time.",
    }),
    "duration": flag.duration(2_000, 100, {
      help:
        "Duration of each measurement, at most 1m0s. The first quarter of " +
        "a throughput measurement is not counted.",
    }),
    "json": flag.boolean(false, "Print one JSON object at the end."),
    "target": flag.word("HOST:PORT", {
      help:
        "Measure against this address, as the agent sees it, where tunnel " +
        "bench --serve runs: for agents without a bench target.",
      defaultText: "the agent itself",
    }),
    "serve": flag.word("[HOST:]PORT", {
      help:
        "Be such a target until interrupted, on loopback unless HOST says " +
        "otherwise. Any client that connects may measure.",
    }),
  }),
  ...ROUTE_FLAGS,
} as const;

type BenchReading = FlagReading<typeof BENCH_FLAGS>;

/**
 * What is to be measured, in the order in which it is.
 *
 * @throws {UsageError}
 */
export function benchPlans({ values }: BenchReading): readonly BenchPlan[] {
  if (values["duration"] > DURATION_MS_MAX) {
    throw new UsageError(
      `Cannot use --duration=${formatGoDuration(values["duration"])}: wanted ` +
        `${formatGoDuration(DURATION_MS_MAX)} at most`,
    );
  }
  const many = values["connections"];
  const counts = many === 1 ? [1] : [1, many];
  return MEASURES
    .filter((measure) => values["measure"].includes(measure))
    .flatMap((measure): readonly BenchPlan[] => {
      switch (measure) {
        case "rtt":
          return [{ kind: "roundTrip", connections: 1 }];
        case "new":
          return [{ kind: "newConnections", connections: many }];
        case "down":
        case "up":
          return counts.map((connections) => ({ kind: measure, connections }));
      }
    });
}

/**
 * `--target`, if it was given.
 *
 * @throws {UsageError}
 */
export function benchTarget({ values }: BenchReading): string | undefined {
  const target = values["target"];
  if (target === "") return undefined;
  return formatHostPort(parseHostPort("--target", target));
}

/**
 * Where `--serve` listens, if it was given.
 *
 * @throws {UsageError}
 */
export function benchServe(
  { values, given }: BenchReading,
): HostPort | undefined {
  const serve = values["serve"];
  if (serve === "") return undefined;
  const others = [...given]
    .filter((name) => !["serve", "v", "config"].includes(name));
  if (others.length > 0) {
    throw new UsageError(
      `Cannot use --${others[0]} together with --serve: it measures nothing, ` +
        "it is measured; remove one of them",
    );
  }
  if (serve === "0") return { host: "127.0.0.1", port: 0 };
  const isPort = /^\d+$/.test(serve);
  return parseHostPort("--serve", isPort ? `127.0.0.1:${serve}` : serve);
}
