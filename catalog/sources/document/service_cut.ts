/**
 * Cuts the text of one service, in JSON, into those of its endpoints and what is
 * around them: where there are thousands, one or two have changed since the text
 * was read last.
 *
 * Like `document_cut.ts` it gives up on whatever is unusual. Texts that can be
 * read on their own, and together make the one that was cut, say what that says.
 *
 * @module
 */

import { endOfNested, endOfString } from "./document_cut.ts";

/** See the module description. */
export interface CutService {
  /** The service with an empty list of endpoints. */
  readonly around: string;
  /** An object each. */
  readonly endpoints: readonly string[];
}

const GAP = /[ \t\r\n]*/y;
const COLON = /[ \t\r\n]*:[ \t\r\n]*/y;
const COMMA = /[ \t\r\n]*,[ \t\r\n]*/y;
const SCALAR = /[-+.\w]+/y;

/** Names and values are never behind each other but by these. */
const [QUOTE, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT] = [0x22, 0x5b, 0x5d, 0x7b];

/** @returns `undefined` when it has no endpoints, or another shape. */
export function cutService(text: string): CutService | undefined {
  let cut: CutService | undefined;
  let at = endOf(GAP, text, 1);
  while (at >= 0 && text.charCodeAt(at) === QUOTE) {
    const endOfName = endOfString(text, at);
    if (endOfName < 0) return undefined;
    const name = text.slice(at + 1, endOfName);
    const start = endOf(COLON, text, endOfName + 1);
    // Names can be spelled otherwise by escapes.
    if (start < 0 || name.includes("\\")) return undefined;
    const end = endOfValue(text, start);
    if (end < 0) return undefined;
    if (name === "endpoints") {
      if (cut !== undefined) return undefined;
      const endpoints = cutList(text, start);
      if (endpoints === undefined) return undefined;
      const around = `${text.slice(0, start)}[]${text.slice(end)}`;
      cut = { around, endpoints };
    }
    at = endOf(COMMA, text, end);
  }
  return cut;
}

/** @returns `undefined`: it is no list of objects. */
function cutList(text: string, start: number): string[] | undefined {
  if (text.charCodeAt(start) !== OPEN_LIST) return undefined;
  const items: string[] = [];
  let at = endOf(GAP, text, start + 1);
  while (text.charCodeAt(at) === OPEN_OBJECT) {
    const end = endOfNested(text, at);
    if (end < 0) return undefined;
    items.push(text.slice(at, end));
    const next = endOf(COMMA, text, end);
    if (next < 0) {
      const close = endOf(GAP, text, end);
      return text.charCodeAt(close) === CLOSE_LIST ? items : undefined;
    }
    at = next;
  }
  return undefined;
}

/** @returns What is behind it; -1: there is none. */
function endOfValue(text: string, start: number): number {
  switch (text.charCodeAt(start)) {
    case QUOTE: {
      const end = endOfString(text, start);
      return end < 0 ? -1 : end + 1;
    }
    case OPEN_LIST:
    case OPEN_OBJECT:
      return endOfNested(text, start);
    default:
      return endOf(SCALAR, text, start);
  }
}

/** @returns What is behind the match; -1: there is none here. */
function endOf(pattern: RegExp, text: string, start: number): number {
  pattern.lastIndex = start;
  return pattern.test(text) ? pattern.lastIndex : -1;
}
