/**
 * The progress of long work: one line on a terminal, which is overwritten. A
 * pipe, a file and a terminal that cannot move its cursor get nothing: the
 * command itself prints lasting results.
 *
 * There are no colours in it, so `NO_COLOR` changes nothing.
 *
 * @module
 */

import { cutToColumns } from "../../platform/text/columns.ts";
import { printable } from "../../platform/text/printable.ts";

/** The terminal of the line. */
export interface ProgressScreen {
  write(text: string): void;
  /** `undefined`: no line can be written over here. */
  columns(): number | undefined;
}

/**
 * Moves to the left end, and erases the line to the right (ECMA-48 §8.3.41).
 */
const ERASE = "\r\x1b[K";

/** See the module description. */
export class ProgressLine {
  #shown = "";

  constructor(
    private readonly screen: ProgressScreen = standardErrorScreen(),
  ) {}

  /** Whether the line is visible. */
  get isLive(): boolean {
    return this.screen.columns() !== undefined;
  }

  /** Puts `text`, which others may have had a hand in, in its place. */
  show(text: string): void {
    const columns = this.screen.columns();
    if (columns === undefined) return;
    // The last column stays free: there some terminals begin another line.
    const line = cutToColumns(printable(text, columns * 2), columns - 1);
    if (line === this.#shown) return;
    this.screen.write(ERASE + line);
    this.#shown = line;
  }

  /** Takes it away, before something else is printed and at the end. */
  clear(): void {
    if (this.#shown === "") return;
    this.screen.write(ERASE);
    this.#shown = "";
  }
}

/** The process's own. */
export function standardErrorScreen(): ProgressScreen {
  return {
    write: (text) => void Deno.stderr.writeSync(new TextEncoder().encode(text)),
    columns: () =>
      isWrittenOver(Deno.stderr) ? Deno.consoleSize().columns : undefined,
  };
}

/** Whether a line on it can be written over. */
export function isWrittenOver(stream: { isTerminal(): boolean }): boolean {
  return stream.isTerminal() && Deno.env.get("TERM") !== "dumb";
}

/** A part of a whole as a bar, such as `████░░░░`. */
export function progressBar(part: number, columns: number): string {
  const filled = Math.floor(Math.min(1, Math.max(0, part)) * columns);
  return "█".repeat(filled) + "░".repeat(columns - filled);
}
