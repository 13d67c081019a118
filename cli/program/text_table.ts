/**
 * What commands print for people: tables in columns, and what stands in them.
 *
 * @module
 */

import { printable } from "../../platform/log/printable.ts";

/** Rows under headings, in columns. */
export function textTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const all = [headings, ...rows.map((row) => row.map(ofOthers))];
  const widths = headings.map((_, column) =>
    Math.max(...all.map((row) => row[column]!.length))
  );
  const line = (row: readonly string[]) =>
    row.map((cell, column) => cell.padEnd(widths[column]!)).join("  ")
      .trimEnd() + "\n";
  return all.map(line).join("");
}

/** Of what others call themselves, or say. */
const WORDS_LENGTH_MAX = 1_000;

/** Names and words of others must not speak to the terminal. */
export function ofOthers(text: string): string {
  return printable(text, WORDS_LENGTH_MAX);
}

/** `12`, `3.4k`, `1.2G`: short enough for a column. */
export function shortCount(count: number): string {
  const unit = ["", "k", "M", "G", "T", "P"];
  let power = 0;
  let rest = count;
  while (rest >= 1_000 && power < unit.length - 1) {
    rest /= 1_000;
    power++;
  }
  const digits = power > 0 && rest < 10 ? 1 : 0;
  return `${rest.toFixed(digits)}${unit[power]}`;
}
