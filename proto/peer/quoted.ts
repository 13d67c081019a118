/**
 * A peer's text in sentences of ours: no longer than needed to recognise it,
 * and in quotes where it could break a line or control a terminal.
 *
 * @module
 */

/** Characters by which a name is known. */
const SHOWN_LENGTH_MAX = 60;

/** The beginning of a text that may be long. */
export function clipped(
  text: string,
  lengthMax: number = SHOWN_LENGTH_MAX,
): string {
  return text.length > lengthMax ? `${kept(text, lengthMax)}…` : text;
}

/**
 * The same for long storage, without a mark of the cut: copied, because a slice
 * would keep a peer's whole megabyte in memory.
 */
export function kept(text: string, lengthMax: number): string {
  return Array.from(text.slice(0, lengthMax)).join("");
}

/** The same in quotes, with escapes for unprintable characters. */
export function quoted(
  text: string,
  lengthMax: number = SHOWN_LENGTH_MAX,
): string {
  return JSON.stringify(clipped(text, lengthMax));
}

// Characters that are invisible, or that make a text look different: control
// characters (C0, DEL, C1), breaks of lines and paragraphs, halves of
// characters, characters that change the direction of the text around them
// (CVE-2021-42574), characters without a shape (Unicode's
// Default_Ignorable_Code_Point: joiners, soft hyphens, tags, variation
// selectors, Hangul fillers) and the braille pattern that is blank.
//
// One list for logs, terminals, names of hosts and the dashboard: two different
// names must look different in all these places.

const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{DI}\u2800]/u;
const EACH_UNSEEN = new RegExp(UNSEEN, "gu");

/**
 * Whether two names may look the same because of it; resolvers drop some of these
 * (`loc\u200balhost`).
 */
export function hasUnseen(text: string): boolean {
  return UNSEEN.test(text);
}

/** `text` with `shown` of each such character in its place. */
export function showUnseen(
  text: string,
  shown: (character: string) => string,
): string {
  return text.replace(EACH_UNSEEN, shown);
}
