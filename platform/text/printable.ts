/**
 * Makes a peer's text safe to show in a log, a terminal or the dashboard: it
 * cannot break the line, colour the terminal, reverse the text beside it, hide,
 * or exceed a limit.
 *
 * @module
 */

import { kept, showUnseen } from "../../proto/peer/quoted.ts";

const SHORT: ReadonlyMap<string, string> = new Map([
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
]);

/**
 * `text` with escapes (`\n`, `\u202e`) for unprintable characters, cut after
 * `lengthMax` characters.
 */
export function printable(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return showUnseen(text, escape);
  const escaped = showUnseen(kept(text, lengthMax), escape);
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
    // Keeps the text's own line breaks, with an indent.
    (one) => one === "\n" ? one : one.split("").map(unitEscape).join(""),
  );
}

function unitEscape(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
