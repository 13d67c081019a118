/**
 * A command's help for a terminal of 80 columns.
 *
 * Flags without an effect and flags that do not exist yet are only named: a reader
 * who looks for a way to do something need not read about them.
 *
 * @module
 */

import { wrapped } from "../../platform/text/columns.ts";
import type { Flag, FlagTable } from "./flag.ts";

/** What stands above and below the flags. */
export interface HelpPage {
  /** Such as `tunnel server [flags]`. */
  readonly usage: string;
  /** Paragraphs. */
  readonly about: readonly string[];
  /** Command lines. */
  readonly examples: readonly string[];
  readonly flags: FlagTable;
}

/** The width that no line exceeds. */
export const HELP_COLUMNS = 80;

/** Column in which explanations begin. */
const EXPLANATION_COLUMN = 30;

/** A command with more flags shows at first those that people use. */
const SHOWN_MAX = 60;

/**
 * Lays the page out; ends with a newline.
 *
 * @param isWhole With the flags that few people use.
 */
export function helpText(page: HelpPage, isWhole = true): string {
  const all = Object.entries(page.flags);
  const isBrief = !isWhole && all.length > SHOWN_MAX;
  const shown = isBrief ? all.filter(([, { isCommon }]) => isCommon) : all;
  const lines = [`Usage: ${page.usage}`, ""];
  for (const paragraph of page.about) {
    lines.push(...wrapped(paragraph, HELP_COLUMNS), "");
  }
  if (page.examples.length > 0) {
    lines.push("Examples:", ...page.examples.map((line) => `  ${line}`), "");
  }
  for (const [group, flags] of flagGroups(Object.fromEntries(shown))) {
    lines.push(`${group}:`, ...groupLines(flags), "");
  }
  if (isBrief) {
    lines.push(`${all.length - shown.length} more flags: --help --all`);
  }
  return lines.join("\n").trimEnd() + "\n";
}

/** Flags by heading, headings in the order of their first flag. */
export function flagGroups(
  table: FlagTable,
): ReadonlyMap<string, readonly (readonly [string, Flag<unknown>])[]> {
  return Map.groupBy(Object.entries(table), ([, { group }]) => group);
}

/** The default in help and documentation; empty when there is none. */
export function shownDefault(flag: Flag<unknown>): string {
  return flag.kind === "boolean" && flag.fallback === false
    ? ""
    : flag.defaultText;
}

function groupLines(
  flags: readonly (readonly [string, Flag<unknown>])[],
): string[] {
  const working = flags.filter(([, flag]) => flag.status.kind === "works");
  const others = flags.filter(([, flag]) => flag.status.kind !== "works");
  const lines = working.flatMap(([name, flag]) => flagLines(name, flag));
  if (others.length > 0) {
    const names = others.map(([name]) => `--${name}`).join(", ");
    lines.push(...wrapped(names, HELP_COLUMNS - 2).map((line) => `  ${line}`));
  }
  return lines;
}

function flagLines(name: string, flag: Flag<unknown>): string[] {
  const isLetter = name.length === 1;
  const names = [
    ...(flag.short === undefined ? [] : [`-${flag.short}`]),
    isLetter ? `-${name}, --${name}` : `--${name}`,
    ...(flag.aliases ?? []).map((alias) => `--${alias}`),
  ].join(", ");
  const head = `  ${names}${flag.placeholder ? ` ${flag.placeholder}` : ""}`;
  const value = shownDefault(flag);
  const text = flag.help + (value === "" ? "" : ` (default: ${value})`);
  const indent = " ".repeat(EXPLANATION_COLUMN);
  const [first, ...rest] = wrapped(text, HELP_COLUMNS - EXPLANATION_COLUMN);
  const tail = rest.map((line) => indent + line);
  return head.length < EXPLANATION_COLUMN - 1
    ? [head.padEnd(EXPLANATION_COLUMN) + first, ...tail]
    : [head, indent + first, ...tail];
}
