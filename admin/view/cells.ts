/**
 * The cells of a row, for every printer: a terminal puts them into columns, the
 * page into a grid or a list. Also the parts of all views: sections with a
 * heading, a summary, a table and sentences; warnings with the command that
 * tells more. It knows neither widths in pixels nor colours.
 *
 * @module
 */

import type { Warning } from "../../proto/admin/status_answer.ts";
import { ageText } from "../../platform/text/quantities.ts";

/** The meaning of a word; each printer has a colour, and a shape, for it. */
export type Tone = "good" | "bad" | "warn" | "info" | "calm";

/** A text, and further facts that the page can use. */
export type Cell = string | {
  readonly text: string;
  readonly tone?: Tone | undefined;
  /** The node, or the conduit, that it names. */
  readonly to?: {
    readonly view: "nodes" | "conduits";
    readonly name: string;
  };
};

/** One column of a table that is made to fit. */
export interface ColumnShape {
  /** In capitals; the page shows it as a word. */
  readonly heading: string;
  /** Numbers stand on the right; absent: on the left. */
  readonly side?: "right" | undefined;
  /** The least columns of the terminal after a cut; absent: it is never cut. */
  readonly least?: number | undefined;
  /** What of a cell's end stays when it is cut, such as a port. */
  readonly endsWith?: RegExp | undefined;
  /** Left out where there is no room, the greatest first; absent: it stays. */
  readonly rank?: number | undefined;
  /** Its part in a list that is not a table; absent: none. */
  readonly part?: "name" | "under" | "value" | undefined;
  /** The unit after its value there. */
  readonly unit?: string | undefined;
}

/** A column that knows its cells. */
export interface Column<T> extends ColumnShape {
  of(item: T, nowMs: number): Cell;
  /** What rows are sorted by; absent: they are not. */
  readonly order?: (item: T) => string | number | undefined;
}

/** One of words. */
export function column<C extends Column<never>>(
  heading: string,
  of: C["of"],
  more?: Omit<C, "heading" | "of">,
): C {
  return { heading, of, ...more } as C;
}

/** One of numbers, which stand on the right. */
export function numbers<C extends Column<never>>(
  heading: string,
  of: C["of"],
  more?: Omit<C, "heading" | "of" | "side">,
): C {
  return { heading, of, side: "right", ...more } as unknown as C;
}

/** Rows under headings. */
export interface Table {
  readonly columns: readonly ColumnShape[];
  readonly rows: readonly (readonly Cell[])[];
  /** A sentence below each row; `""`: none. */
  readonly below?: readonly string[] | undefined;
}

/** The table of some items; without a time it is that of the answer. */
export function tableOf<T>(
  columns: readonly Column<T>[],
  items: readonly T[],
  nowMs = NaN,
): Table {
  return {
    columns,
    rows: items.map((item) => columns.map(({ of }) => of(item, nowMs))),
  };
}

/** The same; nothing where there are no items. */
export function anyTable<T>(
  ...[columns, items, nowMs]: Parameters<typeof tableOf<T>>
): Table | undefined {
  return items.length > 0 ? tableOf(columns, items, nowMs) : undefined;
}

export function cellText(cell: Cell): string {
  return typeof cell === "string" ? cell : cell.text;
}

/** `-` when unknown. */
export function orDash<T>(
  value: T | undefined,
  text: (value: T) => string,
): string {
  return value === undefined ? "-" : text(value);
}

const WORDS: Readonly<Record<Exclude<Tone, "calm">, string>> = {
  good: "online,linked,open,in sync,ok,ready,joined,approved",
  bad: "offline,refused,failed,error,not ready,dial-failed," +
    "duplicate",
  warn: "still,warning,pending,waiting,draining,unlinked,drain,certificate",
  info: "dialing,connecting,notice",
};

const TONES: ReadonlyMap<string, Tone> = new Map(
  Object.entries(WORDS).flatMap(([tone, words]) =>
    words.split(",").map((word) => [word, tone as Tone] as const)
  ),
);

/** The tone of a state, by its word. */
export function toneOf(word: string): Tone {
  return TONES.get(word) ?? "calm";
}

/** A state, in its tone. */
export function stateCell(word: string): Cell {
  return { text: word, tone: toneOf(word) };
}

/** One part of a program's report about itself. */
export interface Section {
  readonly heading: string;
  /** The text beside the heading. */
  readonly summary: string;
  readonly table?: Table | undefined;
  /** How many rows there are besides, and the command that shows them. */
  readonly more?: string | undefined;
  readonly notes?: readonly Note[] | undefined;
  /** Which view of the page has all of it, and in which state. */
  readonly place?:
    | { readonly view: string; readonly state?: string }
    | undefined;
}

/** A sentence of a section. */
export interface Note {
  readonly text: string;
  /** What stands before it. */
  readonly label?: { readonly text: string; readonly tone: Tone };
  /** A further sentence below it. */
  readonly below?: string | undefined;
  /** The node that it concerns. */
  readonly node?: string | undefined;
}

/** One thing that is known of something, by its name. */
export interface Fact {
  readonly name: string;
  /** Several of them; none is `-`. */
  readonly value: Cell | readonly string[];
}

/** The command that tells more of a warning. */
export function nextCommand({ node, code }: Warning): string | undefined {
  if (node !== undefined) {
    const verb = code === "TUN402" ? "doctor node" : "node describe";
    return `tunnel ${verb} ${shellWord(node)}`;
  }
  return code === undefined ? undefined : `tunnel explain ${code}`;
}

/** A name as it can be typed: peers choose it, and a shell may obey it. */
export function shellWord(word: string): string {
  return /^[\w./:@%+=,-]+$/.test(word)
    ? word
    : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** How long something has been so; `-`: that is not known. */
export function ageOf(since: string | undefined, nowMs: number): string {
  const ms = nowMs - Date.parse(since ?? "");
  return Number.isNaN(ms) ? "-" : ageText(ms);
}

/** When that was, to the second: `2026-11-22 10:03:12Z`. */
export function whenText(at: string | number | undefined): string {
  if (typeof at === "number") return whenText(new Date(at).toISOString());
  return at === undefined ? "-" : at.replace("T", " ").replace(/\.\d+/, "");
}
