/**
 * Text of others made fit to be shown, in a line of a log, a terminal or the
 * dashboard: it cannot break the line, colour a terminal, turn around what stands
 * beside it, hide, or be as long as it likes.
 *
 * @module
 */

import { showUnseen } from "../../proto/peer/quoted.ts";

const SHORT: ReadonlyMap<string, string> = new Map([
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
]);

/**
 * Gives `text` with escapes (`\n`, `\u202e`) for what is not to be printed, cut
 * behind `lengthMax` characters.
 */
export function printable(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return showUnseen(text, escape);
  // Put together anew: a slice would keep all of it in memory.
  const kept = Array.from(text.slice(0, lengthMax)).join("");
  const escaped = showUnseen(kept, escape);
  return `${escaped}… (${text.length - lengthMax} more characters)`;
}

function escape(character: string): string {
  const code = character.codePointAt(0)!.toString(16).padStart(4, "0");
  return SHORT.get(character) ??
    (code.length > 4 ? `\\u{${code}}` : `\\u${code}`);
}

/**
 * The same value, in JSON that no terminal obeys: names are of peers, and JSON
 * itself escapes only the oldest control characters.
 */
export function jsonText(value: unknown, indent = 0): string {
  return showUnseen(
    JSON.stringify(value, null, indent) ?? "null",
    // Its own breaks of lines, where it is indented.
    (one) => one === "\n" ? one : one.split("").map(unitEscape).join(""),
  );
}

function unitEscape(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
