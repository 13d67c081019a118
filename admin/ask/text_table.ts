/**
 * What commands print for people: tables in columns, and their cells.
 *
 * @module
 */

import { printable } from "../../platform/text/printable.ts";
import {
  columnsOf,
  cutToColumns,
  inColumns,
} from "../../platform/text/columns.ts";
import { type Cell, cellText, type ColumnShape } from "../view/cells.ts";
import { type Page, PLAIN_PAGE } from "./page.ts";

const GAP = "  ";

/** Rows in columns, under headings such as `NAME | STATE`. */
export function textTable(
  headings: string,
  rows: readonly (readonly string[])[],
): string {
  return fittedTable(
    headings.split(" | ").map((heading) => ({ heading })),
    rows,
  )
    .map((line) => `${line}\n`).join("");
}

/**
 * The lines of a table in the columns that a page has: cells are cut, and
 * columns left out. Peers' text is made safe for a terminal.
 */
export function fittedTable(
  columns: readonly ColumnShape[],
  rows: readonly (readonly Cell[])[],
  page: Page = PLAIN_PAGE,
): string[] {
  const shown = rows.map((row) => row.map(harmless));
  const natural = columns.map(({ heading }, at) => {
    let widest = heading.length;
    for (const row of shown) {
      widest = Math.max(widest, columnsOf(cellText(row[at]!)));
    }
    return widest;
  });
  const widths = fit(columns, natural, page.columns);
  const head = columns.map(({ heading }): Cell =>
    page.isPlain ? heading : { text: heading, tone: "calm" }
  );
  return [head, ...shown].map((row) => lineOf(row, columns, widths, page));
}

/** One row; thousands may follow. */
function lineOf(
  row: readonly Cell[],
  columns: readonly ColumnShape[],
  widths: readonly number[],
  page: Page,
): string {
  let last = row.length - 1;
  while (last > 0 && (widths[last] === 0 || cellText(row[last]!) === "")) {
    last--;
  }
  let line = "";
  for (let at = 0; at <= last; at++) {
    const width = widths[at]!;
    if (width === 0) continue;
    const cell = row[at]!;
    const { side = "left", endsWith } = columns[at]!;
    const whole = cutBefore(cellText(cell), endsWith, width);
    // The last column needs no padding.
    const text = at === last && side === "left"
      ? cutToColumns(whole, width)
      : inColumns(whole, width, side);
    if (line !== "") line += GAP;
    const tone = typeof cell === "string" ? undefined : cell.tone;
    line += tone === undefined ? text : page.paint(text, tone);
  }
  return line;
}

/** `text` in this many columns, cut before the end that must stay. */
export function cutBefore(
  text: string,
  endsWith: RegExp | undefined,
  columns: number,
): string {
  const [end = ""] = endsWith?.exec(text) ?? [];
  if (end === "" || columnsOf(text) <= columns) return text;
  return cutToColumns(text.slice(0, -end.length), columns - end.length) + end;
}

/** A peer may have written its content. */
function harmless(cell: Cell): Cell {
  if (typeof cell === "string") return ofOthers(cell);
  const text = ofOthers(cell.text);
  return text === cell.text ? cell : { ...cell, text };
}

/** How wide each column becomes; 0: it is left out. */
function fit(
  columns: readonly ColumnShape[],
  natural: readonly number[],
  columnsMax: number,
): number[] {
  const widths = [...natural];
  for (;;) {
    const over = widthOf(widths) - columnsMax;
    if (over <= 0) return widths;
    const least = widths.map((width, at) =>
      Math.min(width, columns[at]!.least ?? width)
    );
    if (widthOf(least) <= columnsMax) return shrunk(widths, least, over);
    const [next] = columns
      .map(({ rank = 0 }, at) => ({ rank, at }))
      .filter(({ rank, at }) => rank > 0 && widths[at]! > 0)
      .sort((a, b) => b.rank - a.rank || b.at - a.at);
    if (next === undefined) {
      const bare = widths.map((width) => Math.min(width, 1));
      return shrunk(widths, bare, Math.min(over, widthOf(widths)));
    }
    widths[next.at] = 0;
  }
}

function widthOf(widths: readonly number[]): number {
  const shown = widths.filter((width) => width > 0);
  return shown.reduce((sum, width) => sum + width, 0) +
    GAP.length * Math.max(0, shown.length - 1);
}

/** The widest gives first, so that short cells stay whole. */
function shrunk(
  widths: number[],
  least: readonly number[],
  over: number,
): number[] {
  for (let rest = over; rest > 0; rest--) {
    let widest = -1;
    for (const [at, width] of widths.entries()) {
      const isMore = widest < 0 || width > widths[widest]!;
      if (width > least[at]! && isMore) widest = at;
    }
    if (widest < 0) break;
    widths[widest]!--;
  }
  return widths;
}

/** Limit on peers' names and words. */
const WORDS_LENGTH_MAX = 1_000;

const HARMLESS = /^[ -~]*$/;

/** Peers' names and words must not control the terminal. */
export function ofOthers(text: string): string {
  if (text.length <= WORDS_LENGTH_MAX && HARMLESS.test(text)) return text;
  return printable(text, WORDS_LENGTH_MAX);
}
