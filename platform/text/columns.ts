/**
 * How many columns of a terminal a text takes, and texts cut to fit: wide
 * characters take two, combining marks none.
 *
 * Control and invisible characters do not occur here: `printable` has removed
 * them before.
 *
 * @module
 */

/** Says that something was cut. */
export const ELLIPSIS = "…";

/** One character of those may stand over another; more of them is a prank. */
const MARKS_MAX = 3;

// deno-lint-ignore no-control-regex
const PLAIN = /^[\x00-\x7f]*$/;

const MARK = /^[\p{Mn}\p{Me}\u200d\ufe0e\ufe0f]$/u;

/** Pictures, which terminals draw as wide as two letters. */
const PICTURE = /^\p{Emoji_Presentation}$/u;

/** First and last of the wide characters of Unicode (UAX 11), emoji aside. */
const WIDE: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2329, 0x232a],
  [0x2e80, 0x303e],
  [0x3041, 0x4dbf],
  [0x4e00, 0xa4cf],
  [0xa960, 0xa97f],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x16fe0, 0x18cff],
  [0x1aff0, 0x1b2ff],
  [0x1d300, 0x1d376],
  [0x1f200, 0x1f2ff],
  [0x20000, 0x3fffd],
];

/** How many columns `text` takes. */
export function columnsOf(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let columns = 0;
  for (const character of text) columns += columnsOfOne(character);
  return columns;
}

/** `text` in at most this many columns, with an ellipsis at a cut. */
export function cutToColumns(text: string, columnsMax: number): string {
  if (columnsMax < 1) return "";
  if (PLAIN.test(text)) {
    return text.length <= columnsMax
      ? text
      : text.slice(0, columnsMax - 1) + ELLIPSIS;
  }
  if (columnsOf(text) <= columnsMax) return withoutPiles(text);
  let [kept, columns] = ["", 0];
  for (const character of text) {
    columns += columnsOfOne(character);
    if (columns > columnsMax - 1) break;
    kept += character;
  }
  return withoutPiles(kept) + ELLIPSIS;
}

/** `text` in exactly this many columns: cut, or padded on one side. */
export function inColumns(
  text: string,
  columns: number,
  side: "left" | "right" = "left",
): string {
  const kept = cutToColumns(text, columns);
  // The ellipsis is a column, too.
  if (PLAIN.test(text)) {
    return side === "left" ? kept.padEnd(columns) : kept.padStart(columns);
  }
  const rest = " ".repeat(Math.max(0, columns - columnsOf(kept)));
  return side === "left" ? kept + rest : rest + kept;
}

/** `text` in lines of at most this many columns, broken between words. */
export function wrapped(text: string, columnsMax: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (line === "" || columnsOf(longer) <= columnsMax) line = longer;
    else {
      lines.push(line);
      line = word;
    }
  }
  lines.push(line);
  return lines.flatMap((line) => broken(line, columnsMax));
}

/** A word may be longer than a line: a path, or what a peer calls itself. */
function broken(line: string, columnsMax: number): string[] {
  const pieces: string[] = [];
  let rest = line;
  while (columnsOf(rest) > columnsMax) {
    let [piece, columns] = ["", 0];
    for (const character of rest) {
      columns += columnsOfOne(character);
      if (columns > columnsMax && piece !== "") break;
      piece += character;
    }
    if (piece === rest) break;
    pieces.push(withoutPiles(piece));
    rest = rest.slice(piece.length);
  }
  if (rest !== "" || pieces.length === 0) pieces.push(withoutPiles(rest));
  return pieces;
}

function columnsOfOne(character: string): number {
  const code = character.codePointAt(0)!;
  if (code < 0x300) return 1;
  if (MARK.test(character)) return 0;
  if (PICTURE.test(character)) return 2;
  return WIDE.some(([first, last]) => code >= first && code <= last) ? 2 : 1;
}

/** Marks take no columns, so that any number of them would fit. */
function withoutPiles(text: string): string {
  if (PLAIN.test(text)) return text;
  let [kept, marks] = ["", 0];
  for (const character of text) {
    marks = columnsOfOne(character) === 0 ? marks + 1 : 0;
    if (marks <= MARKS_MAX) kept += character;
  }
  return kept;
}
