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
 * The same to be kept for long, without a sign that it was cut: put together
 * anew, for a slice would keep all of a peer's megabyte in memory.
 */
export function kept(text: string, lengthMax: number): string {
  return Array.from(text.slice(0, lengthMax)).join("");
}

/** The same in quotes, with escapes for what is not to be printed. */
export function quoted(
  text: string,
  lengthMax: number = SHOWN_LENGTH_MAX,
): string {
  return JSON.stringify(clipped(text, lengthMax));
}
