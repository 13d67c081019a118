/**
 * Text that a peer chose, as all our programs show it, and short. It is only ever
 * put into text nodes.
 *
 * @module
 */

import { printable } from "../../platform/text/printable.ts";

/** What a cell or a sentence shows of it, in characters. */
const PEER_TEXT_MAX = 256;

/** `text` with everything unseen spelled out, and an end. */
export function peerText(text: string, max: number = PEER_TEXT_MAX): string {
  return printable(text, max);
}
