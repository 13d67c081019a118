/**
 * What commands print for people: tables in columns, and what stands in them.
 *
 * @module
 */

import { printable } from "../../platform/log/printable.ts";
import { columnsOf, inColumns } from "../../platform/text/columns.ts";
import { type Page, PLAIN_PAGE, type Tone } from "./page.ts";

/** What stands in a row. */
export type Cell = string | { readonly text: string; readonly tone: Tone };

/** One column of a table that is made to fit. */
export interface Column {
  readonly heading: string;
  /** Numbers stand on the right; absent: on the left. */
  readonly side?: "right";
  /** It may be cut to so many columns of the terminal; absent: it is never. */
  readonly least?: number;
  /** Left out where there is no room, the greatest first; absent: it stays. */
  readonly rank?: number;
}

const GAP = "  ";

/** Rows under headings, in columns. */
export function textTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  return fittedTable(headings.map((heading) => ({ heading })), rows)
    .map((line) => `${line}\n`).join("");
}

/**
 * The lines of a table in the columns that a page has: cells are cut, and
 * columns left out. Whatever others wrote is made fit for a terminal.
 */
export function fittedTable(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  page: Page = PLAIN_PAGE,
): string[] {
  const shown = rows.map((row) => row.map(shownCell));
  const natural = columns.map(({ heading }, at) =>
    shown.reduce(
      (widest, row) => Math.max(widest, columnsOf(row[at]!.text)),
      heading.length,
    )
  );
  const widths = fit(columns, natural, page.columns);
  const line = (cells: readonly ShownCell[]) => {
    const last = cells.findLastIndex(({ text }, at) =>
      text !== "" && widths[at] !== 0
    );
    return cells.slice(0, last + 1).flatMap(({ text, tone }, at) => {
      if (widths[at] === 0) return [];
      const { side } = columns[at]!;
      const cell = at === last && side === undefined
        ? inColumns(text, widths[at]!).trimEnd()
        : inColumns(text, widths[at]!, side === "right" ? "right" : "left");
      return tone === undefined ? cell : page.paint(cell, tone);
    }).join(GAP);
  };
  const head = columns.map(({ heading }): ShownCell => ({
    text: heading,
    ...page.isPlain ? {} : { tone: "dim" },
  }));
  return [head, ...shown].map(line);
}

interface ShownCell {
  readonly text: string;
  readonly tone?: Tone;
}

function shownCell(cell: Cell): ShownCell {
  return typeof cell === "string"
    ? { text: ofOthers(cell) }
    : { text: ofOthers(cell.text), tone: cell.tone };
}

/** How wide each column becomes; 0: it is left out. */
function fit(
  columns: readonly Column[],
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
