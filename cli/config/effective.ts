/**
 * `tunnel config print`: the flags of a command as they would be in effect, and
 * where each is from.
 *
 * @module
 */

import { type Flag, type FlagTable } from "../flags/flag.ts";
import { type FlagSources, readFlags } from "../flags/read_flags.ts";
import { withoutUrlSecrets } from "./secrets.ts";

/** One flag as it is in effect. */
export interface EffectiveFlag {
  readonly flag: string;
  readonly value: string;
  /** `default`, `--x`, `$TUNNEL_X`, `"x" in FILE`. */
  readonly from: string;
}

/** What stands in a secret's place. */
export const HIDDEN = "(hidden)";

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

function shownValue(
  name: string,
  { defaultText, fallback }: Flag<unknown>,
  value: unknown,
): string {
  // The table knows how its default is written, in units that people read.
  if (JSON.stringify(value) === JSON.stringify(fallback)) return defaultText;
  const text = Array.isArray(value) ? value.join(",") : shownText(value);
  return SECRET.test(name) ? HIDDEN : withoutUrlSecrets(text);
}

function shownText(value: unknown): string {
  return typeof value === "object" && value !== null
    ? JSON.stringify(value)
    : String(value);
}
