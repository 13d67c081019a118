/**
 * What text for people is written on: how wide it is, and whether there are
 * colours.
 *
 * @module
 */

import { columnsOf, cutToColumns } from "../../platform/text/columns.ts";
import type { Tone } from "../view/cells.ts";

/** The tone of a piece of text, and its emphasis. */
export type Paint = Tone | "dim" | "bold" | "chosen";

/** Something to write on. */
export interface Page {
  /** `Infinity`: nothing is cut. */
  readonly columns: number;
  /** There are no colours. */
  readonly isPlain: boolean;
  paint(text: string, tone: Paint): string;
}

/** The output of a command. */
export interface Surface {
  /** Its size; absent, or `undefined`: it is no terminal. */
  readonly terminal?: () => { readonly columns: number } | undefined;
  readonly environment: (name: string) => string | undefined;
}

/** Select Graphic Rendition (ECMA-48 §8.3.117). */
const RENDITIONS: Readonly<Record<Paint, string>> = {
  bad: "1;31",
  warn: "33",
  good: "32",
  info: "36",
  calm: "2",
  dim: "2",
  bold: "1",
  chosen: "7",
};

/** A file or a pipe: without cuts and colours. */
export const PLAIN_PAGE: Page = {
  columns: Infinity,
  isPlain: true,
  paint: (text) => text,
};

/**
 * The output of a command: a terminal of some width, or a file or pipe. No
 * colours with `NO_COLOR` (no-color.org). @param isWide Nothing is cut.
 */
export function pageOf(
  { terminal, environment }: Surface,
  isWide = false,
): Page {
  const size = terminal?.();
  if (size === undefined) return PLAIN_PAGE;
  const isPlain = !!environment("NO_COLOR");
  return {
    columns: isWide ? Infinity : size.columns,
    isPlain,
    paint: isPlain
      ? (text) => text
      : (text, tone) =>
        text === "" ? "" : `\x1b[${RENDITIONS[tone]}m${text}\x1b[0m`,
  };
}

/** `line`, which may have colours, in at most this many columns. */
export function cutPainted(line: string, columnsMax: number): string {
  if (!line.includes("\x1b")) return cutToColumns(line, columnsMax);
  let [kept, columns] = ["", 0];
  for (const piece of line.split(COLOUR)) {
    if (piece.startsWith("\x1b")) kept += piece;
    else if (columns <= columnsMax) {
      const room = columnsMax - columns;
      kept += cutToColumns(piece, room);
      columns += columnsOf(piece);
    }
  }
  return kept;
}

// deno-lint-ignore no-control-regex -- what `paint` writes
const COLOUR = /(\x1b\[[\d;]*m)/;
