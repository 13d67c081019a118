/**
 * The flags of a command as they are in effect: their origins, without secrets,
 * and the effect of a changed `--config` file while the program runs. The log
 * level and other live flags follow the file at once; changes of all other
 * flags are reported, and apply at the next start.
 *
 * @module
 */

import type { Flag, FlagTable, FlagValues } from "./flag.ts";
import { type FlagSources, readFlags } from "./read_flags.ts";
import type { ConfigAnswer } from "../../proto/admin/list_answers.ts";
import { HIDDEN, withoutSecrets } from "./secrets.ts";
import { FileError } from "../../platform/files/file_error.ts";
import type { LeveledLog } from "../../platform/log/log.ts";
import type { ReloadSource } from "../../platform/reload/reloads.ts";
import { UsageError } from "./usage_error.ts";

/** One flag in effect. */
export interface EffectiveFlag {
  readonly flag: string;
  readonly value: string;
  /** `default`, `--x`, `$TUNNEL_X`, `"x" in FILE`. */
  readonly from: string;
}

/** Flags whose value is the secret itself, and not the name of its file. */
const SECRET = /(?:^|-)(?:token|password|secret|join)$/;

/**
 * All flags of a command.
 *
 * @throws {UsageError} As the command itself would.
 */
export function effectiveFlags(
  command: string,
  table: FlagTable,
  sources: FlagSources,
): readonly EffectiveFlag[] {
  const { values, origins } = readFlags(command, table, sources);
  return Object.entries(table)
    .filter(([name]) => name !== "help")
    .map(([name, flag]) => ({
      flag: name,
      value: shownValue(name, flag, values[name]),
      from: origins.get(name) ?? "default",
    }));
}

/** The same, as a program that was started with them answers it. */
export function shownFlags(
  command: string,
  table: FlagTable,
  sources: FlagSources,
): () => ConfigAnswer["flags"] {
  // The present moment: files may have changed when the answer is requested.
  const flags = effectiveFlags(command, table, sources)
    .map(({ flag, value, from }) => ({
      name: flag,
      value,
      from: sourceOf(from),
    }));
  return () => flags;
}

function sourceOf(origin: string): ConfigAnswer["flags"][number]["from"] {
  if (origin === "default") return "default";
  if (origin.startsWith("--")) return "flag";
  return origin.startsWith("$") ? "environment" : "file";
}

function shownValue(
  name: string,
  { defaultText, fallback }: Flag<unknown>,
  value: unknown,
): string {
  // The table knows how its default is written, in units that people read.
  if (JSON.stringify(value) === JSON.stringify(fallback)) return defaultText;
  const text = Array.isArray(value) ? value.join(",") : shownText(value);
  return SECRET.test(name) ? HIDDEN : withoutSecrets(text);
}

function shownText(value: unknown): string {
  return typeof value === "object" && value !== null
    ? JSON.stringify(value)
    : String(value);
}

/** What {@linkcode liveConfig} needs to read flags as the start did. */
export interface LiveConfigOptions<T extends FlagTable> {
  /** The command's name in messages, such as `server`. */
  readonly command: string;
  readonly table: T;
  readonly sources: FlagSources;
  /** The values at the start. */
  readonly values: FlagValues<T>;
  readonly log: LeveledLog;
  /** Flags, in addition to `v`, that `take` applies at once. */
  readonly live?: {
    readonly flags: readonly string[];
    /** @throws {UsageError} Then nothing changes. */
    take(values: FlagValues<T>): void;
  };
}

/** @returns `undefined` when there is no such file. */
export function liveConfig<T extends FlagTable>(
  options: LiveConfigOptions<T>,
): ReloadSource | undefined {
  const { command, table, sources, values: atStart, log, live } = options;
  const path: unknown = atStart["config"];
  if (typeof path !== "string" || path === "") return undefined;
  let known = atStart;
  return {
    kind: "config",
    files: [path],
    reload() {
      const read = inFileWords(() => readFlags(command, table, sources).values);
      const changed = differences(read, known);
      const taken = changed.filter((name) => live?.flags.includes(name));
      if (taken.length > 0) inFileWords(() => live!.take(read));
      known = read;
      if (changed.length === 0) return undefined;
      if (changed.includes("v")) log.level = Number(read["v"]);
      const late = differences(read, atStart)
        .filter((name) => name !== "v" && !live?.flags.includes(name));
      const news = [
        changed.includes("v") ? `the level of the log is ${log.level}` : "",
        named("taken over", taken),
        named("taken over at the next start", late),
      ].filter((text) => text !== "");
      return news.join("; ") || "as it was at the start";
    },
  };
}

function named(what: string, flags: readonly string[]): string {
  return flags.length === 0 ? "" : `${what}: --${flags.join(", --")}`;
}

function differences(
  one: Readonly<Record<string, unknown>>,
  other: Readonly<Record<string, unknown>>,
): string[] {
  const texts = new Map(
    Object.entries(other).map(([name, value]) => [name, JSON.stringify(value)]),
  );
  return Object.entries(one)
    .filter(([name, value]) => JSON.stringify(value) !== texts.get(name))
    .map(([name]) => name);
}

function inFileWords<Result>(act: () => Result): Result {
  try {
    return act();
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new FileError(error.message, { cause: error });
  }
}
