/**
 * The flags of a command as they are in effect, and where each is from, without
 * secrets: for `tunnel config print`, and for the admin API of what runs.
 *
 * @module
 */

import { type Flag, type FlagTable } from "./flag.ts";
import { type FlagSources, readFlags } from "./read_flags.ts";
import type { ConfigAnswer } from "../../proto/admin/list_answers.ts";
import { HIDDEN, withoutSecrets } from "./secrets.ts";

/** One flag as it is in effect. */
export interface EffectiveFlag {
  readonly flag: string;
  readonly value: string;
  /** `default`, `--x`, `$TUNNEL_X`, `"x" in FILE`. */
  readonly from: string;
}

/** Flags whose value is the secret itself, and not a file with it. */
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
  // Now: files may be others when somebody asks.
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
