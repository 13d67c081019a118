/**
 * What the command line asks the bench for.
 *
 * @module
 */

import { parseArgs } from "@std/cli";
import {
  CONTENDER_NAMES,
  type ContenderName,
  FULL,
  type Metric,
  QUICK,
  type Scale,
} from "./metric.ts";

export interface Plan {
  readonly metrics: readonly string[];
  readonly rounds: number;
  readonly scale: Scale;
  /** Who is measured. */
  readonly a: ContenderName;
  /** Beside whom; `a` may be among them, to see how far chance goes. */
  readonly peers: readonly ContenderName[];
  readonly jsonFile: string | undefined;
  readonly markdownFile: string | undefined;
}

const TEXT_FLAGS = ["rounds", "json", "markdown", "a", "b", "peers"];
const FLAGS = new Set(["quick", ...TEXT_FLAGS].map((name) => `--${name}`));

const ROUNDS = 5;
const ROUNDS_QUICK = 2;

/**
 * Reads the command line.
 *
 * @param known All metrics by name.
 * @returns What is wrong with it in place of a plan.
 */
export function readPlan(
  args: readonly string[],
  known: Readonly<Record<string, Metric>>,
): Plan | string {
  const wrong = args.find((word) =>
    word.startsWith("--") && !FLAGS.has(word.split("=")[0]!)
  );
  if (wrong !== undefined) return `unknown flag ${wrong}`;
  const flags = parseArgs([...args], {
    boolean: ["quick"],
    string: TEXT_FLAGS,
  });
  if (flags.b !== undefined && flags.peers !== undefined) {
    return "--b and --peers say the same: one of them";
  }
  const peers = String(flags.peers ?? flags.b ?? "konnectivity").split(",");
  const a = String(flags.a ?? "ours");
  for (const name of [a, ...peers]) {
    if (!isContender(name)) {
      return `unknown contender '${name}': ${CONTENDER_NAMES.join(" ")}`;
    }
  }
  const metrics = flags._.length > 0
    ? flags._.map(String)
    : defaultMetrics(known, flags.quick === true);
  const unknown = metrics.find((name) => known[name] === undefined);
  if (unknown !== undefined) {
    return `unknown metric '${unknown}': ${Object.keys(known).join(" ")}`;
  }
  const rounds = Number(flags.rounds ?? (flags.quick ? ROUNDS_QUICK : ROUNDS));
  if (!Number.isInteger(rounds) || rounds < 1) {
    return "--rounds wants 1 or more";
  }
  return {
    metrics,
    rounds,
    scale: flags.quick ? QUICK : FULL,
    a: a as ContenderName,
    peers: peers as ContenderName[],
    jsonFile: fileOf(flags.json),
    markdownFile: fileOf(flags.markdown),
  };
}

function fileOf(flag: unknown): string | undefined {
  return flag === undefined ? undefined : String(flag);
}

function isContender(name: string): name is ContenderName {
  return (CONTENDER_NAMES as readonly string[]).includes(name);
}

function defaultMetrics(
  known: Readonly<Record<string, Metric>>,
  isQuick: boolean,
): string[] {
  return Object.entries(known)
    .filter(([, metric]) => metric.isOnRequest !== true)
    .filter(([, metric]) => !isQuick || metric.isQuick === true)
    .map(([name]) => name);
}
