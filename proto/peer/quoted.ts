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
  return text.length > lengthMax ? `${text.slice(0, lengthMax)}…` : text;
}

/** The same in quotes, with escapes for what is not to be printed. */
export function quoted(
  text: string,
  lengthMax: number = SHOWN_LENGTH_MAX,
): string {
  return JSON.stringify(clipped(text, lengthMax));
}
