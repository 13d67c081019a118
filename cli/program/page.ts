/**
 * What text for people is written on: how wide it is, and whether there are
 * colours.
 *
 * @module
 */

/** What a piece of text is about, which is what its colour says. */
export type Tone = "bad" | "warn" | "good" | "dim" | "bold" | "chosen";

/** Something to write on. */
export interface Page {
  /** `Infinity`: nothing is cut. */
  readonly columns: number;
  /** There are no colours. */
  readonly isPlain: boolean;
  paint(text: string, tone: Tone): string;
}

/** Select Graphic Rendition (ECMA-48 §8.3.117). */
const RENDITIONS: Readonly<Record<Tone, string>> = {
  bad: "1;31",
  warn: "33",
  good: "32",
  dim: "2",
  bold: "1",
  chosen: "7",
};

/** A file, or a pipe: nothing is cut or coloured there. */
export const PLAIN_PAGE: Page = {
  columns: Infinity,
  isPlain: true,
  paint: (text) => text,
};

/** What is known of where a command writes. */
export interface PageFacts {
  readonly isTerminal: boolean;
  /** Of the terminal; 0 where nobody knows. */
  readonly columns: number;
  readonly environment: (name: string) => string | undefined;
  /** Nothing is to be cut. */
  readonly isWide?: boolean;
}

/** What programs assume of a terminal that does not say it. */
const COLUMNS_UNKNOWN = 80;

/** A page for those facts; colours not with `NO_COLOR` (no-color.org). */
export function pageOf(
  { isTerminal, columns, environment, isWide }: PageFacts,
): Page {
  if (!isTerminal) return PLAIN_PAGE;
  const isPlain = !!environment("NO_COLOR") || environment("TERM") === "dumb";
  return {
    columns: isWide ? Infinity : columns || COLUMNS_UNKNOWN,
    isPlain,
    paint: isPlain
      ? (text) => text
      : (text, tone) =>
        text === "" ? "" : `\x1b[${RENDITIONS[tone]}m${text}\x1b[0m`,
  };
}

/** Standard output, as it is now. */
export function outputPage(
  environment: (name: string) => string | undefined,
  isWide = false,
): Page {
  return pageOf({
    isTerminal: Deno.stdout.isTerminal(),
    columns: terminalColumns(),
    environment,
    isWide,
  });
}

function terminalColumns(): number {
  try {
    return Deno.consoleSize().columns;
  } catch {
    return 0;
  }
}
