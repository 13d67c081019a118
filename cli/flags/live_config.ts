/**
 * A `--config` file that changes while the program runs: the level of the log
 * follows it at once, the rest is for the next start, and is named.
 *
 * @module
 */

import { FileError } from "../../host/files/file_error.ts";
import type { LeveledLog } from "../../host/log.ts";
import type { ReloadSource } from "../../host/reload/reloads.ts";
import { UsageError } from "../usage_error.ts";
import type { FlagTable } from "./flag.ts";
import { type FlagSources, readFlags } from "./read_flags.ts";

/** Flags whose values are taken over at once. */
const LIVE_FLAGS: ReadonlySet<string> = new Set(["v"]);

/** What {@linkcode liveConfig} needs to read flags as the start did. */
export interface LiveConfigOptions {
  /** For messages, such as `server`. */
  readonly command: string;
  readonly table: FlagTable;
  readonly sources: FlagSources;
  /** As the start has read them. */
  readonly values: Readonly<Record<string, unknown>>;
  readonly log: LeveledLog;
}

/** @returns `undefined` when there is no such file. */
export function liveConfig(
  { command, table, sources, values, log }: LiveConfigOptions,
): ReloadSource | undefined {
  const { config: path } = values;
  if (typeof path !== "string" || path === "") return undefined;
  let known = values;
  return {
    kind: "config",
    files: [path],
    reload() {
      const read = readAgain(command, table, sources);
      const isNews = differences(read, known).length > 0;
      known = read;
      if (!isNews) return undefined;
      const level = log.level;
      if (typeof read["v"] === "number") log.level = read["v"];
      const now = level === log.level
        ? []
        : [`the level of the log is ${log.level}`];
      const late = differences(read, values)
        .filter((name) => !LIVE_FLAGS.has(name));
      const then = late.length === 0
        ? []
        : [`taken over at the next start: --${late.join(", --")}`];
      return [...now, ...then].join("; ") || "as it was at the start";
    },
  };
}

function differences(
  one: Readonly<Record<string, unknown>>,
  other: Readonly<Record<string, unknown>>,
): string[] {
  return Object.keys(one).filter((name) =>
    JSON.stringify(one[name]) !== JSON.stringify(other[name])
  );
}

function readAgain(
  command: string,
  table: FlagTable,
  sources: FlagSources,
): Readonly<Record<string, unknown>> {
  try {
    return readFlags(command, table, sources).values;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new FileError(error.message, { cause: error });
  }
}
