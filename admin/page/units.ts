/**
 * Times as this browser writes them; all other numbers are as all our programs
 * write them (`platform/text/quantities.ts`). And text that a peer chose, as all
 * our programs show it, and short; it is only ever put into text nodes.
 *
 * @module
 */

import { ageText } from "../../platform/text/quantities.ts";
import { printable } from "../../platform/text/printable.ts";

/** How long ago: `12m ago`. */
export function agoText(at: string | undefined, nowMs: number): string {
  const ms = Date.parse(at ?? "");
  if (Number.isNaN(ms)) return "–";
  const gone = nowMs - ms;
  return gone < 5000 ? "just now" : `${ageText(gone)} ago`;
}

/** `22 Nov 22:31:04`, where this browser is. */
export function timeText(at: string | number): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "–";
  return TIME.format(date).replace(",", "");
}

/** `22:31:04`, where this browser is. */
export function clockText(at: string | number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? "–" : CLOCK.format(date);
}

const TIME = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});
const CLOCK = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});

/** How much of it a cell or a sentence shows, in characters. */
const PEER_TEXT_MAX = 256;

/** `text` with everything unseen spelled out, and an end. */
export function peerText(text: string, max: number = PEER_TEXT_MAX): string {
  return printable(text, max);
}
