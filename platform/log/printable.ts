/**
 * Text of others made fit for a line of a log: it cannot break the line, colour
 * a terminal, turn around what stands beside it, or be as long as it likes.
 *
 * @module
 */

/**
 * What must not reach a terminal as it is: control characters (C0, DEL, C1), the
 * breaks of lines and paragraphs, what is invisible, and what changes the
 * direction of the text around it (CVE-2021-42574). Halves of characters, too.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

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
  if (text.length <= lengthMax) return text.replace(UNPRINTABLE, escape);
  // Put together anew: a slice would keep all of it in memory.
  const kept = Array.from(text.slice(0, lengthMax)).join("");
  const escaped = kept.replace(UNPRINTABLE, escape);
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
  return (JSON.stringify(value, null, indent) ?? "null").replace(
    UNSEEN,
    (text) =>
      text.split("").map((unit) =>
        `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`
      ).join(""),
  );
}

/** DEL, C1, breaks of lines, the unseen, what turns text around. */
const UNSEEN = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
