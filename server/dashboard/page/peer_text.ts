/**
 * Text that a peer chose, made fit to be shown: short, on one line, and unable to
 * turn the direction of what stands beside it (CVE-2021-42574 shows what bidi
 * overrides can pretend). It is only ever put into text nodes.
 *
 * @module
 */

/** What a cell or a sentence shows of it. */
export const PEER_TEXT_MAX = 256;

// C0, C1, and what orders the direction of text.
const UNSEEN =
  // deno-lint-ignore no-control-regex -- these are what is looked for.
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** `text` with everything unseen spelled out, and an end. */
export function peerText(text: string, max: number = PEER_TEXT_MAX): string {
  const short = text.length > max ? `${text.slice(0, max)}…` : text;
  return short.toWellFormed().replace(
    UNSEEN,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
