/**
 * The line of a YAML or JSON text on which a place of the document stands.
 *
 * For messages only. Readers that remember where everything stood take ten times
 * as long as those that do not, so this one looks for the place when something is
 * wrong: by indentation, and between brackets by commas. It does not know all of
 * YAML (aliases, merged maps, `? ` before a key); the line of what it cannot find
 * is that of what it is in.
 *
 * @module
 */

import type { DocumentPath } from "./document_map.ts";

/** A place in a text, both counted from 1. */
export interface TextPosition {
  readonly line: number;
  readonly column: number;
}

/** Counted from 1; of what is missing, the line of what it is in. */
export function lineOf(text: string, place: DocumentPath): number {
  return positionOf(text, place).line;
}

/** As `lineOf`, with the column. */
export function positionOf(text: string, place: DocumentPath): TextPosition {
  let found = startOfValue(text, 0);
  let value = found;
  for (const part of place) {
    const isFlow = text[value] === "{" || text[value] === "[";
    const entries = isFlow
      ? flowEntries(text, value)
      : blockEntries(text, value);
    let index = 0;
    let next: Entry | undefined;
    for (const entry of entries) {
      if ((entry.key ?? index++) !== part) continue;
      next = entry;
      break;
    }
    if (next === undefined) break;
    found = next.start;
    value = startOfValue(text, next.value);
  }
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < found;) {
    line++;
    at = text.indexOf("\n", at + 1);
  }
  const column = found - text.lastIndexOf("\n", Math.max(0, found - 1));
  return { line, column: found === 0 ? 1 : column };
}

/** One of a list, or of a map. */
interface Entry {
  readonly start: number;
  /** Absent in a list. */
  readonly key?: string;
  /** Where its value begins at the earliest. */
  readonly value: number;
}

/** Spaces and ends of lines, a comment, a directive, an anchor, a tag. */
const BEFORE_VALUE = /[ \t\r\n]+|#.*|^---(?=\s|$)|^%.*|[&!][^ \t\r\n,[\]{}]*/my;

function startOfValue(text: string, start: number): number {
  let at = start;
  do BEFORE_VALUE.lastIndex = at; while (
    BEFORE_VALUE.test(text) && (at = BEFORE_VALUE.lastIndex) > 0
  );
  return at;
}

/** What begins in the same column as `start`; what is deeper is inside. */
function* blockEntries(text: string, start: number): Iterable<Entry> {
  const column = start - (text.lastIndexOf("\n", start - 1) + 1);
  const isList = isDash(text, start);
  for (let at = start; at < text.length;) {
    if (isList !== isDash(text, at)) {
      if (isList) return;
    } else if (isList) {
      yield { start: at, value: at + 1 };
    } else {
      const { key, end } = keyAt(text, at, endOfLine(text, at));
      if (key !== undefined) yield { start: at, key, value: end };
    }
    at = nextInColumn(text, endOfLine(text, at), column);
  }
}

function isDash(text: string, at: number): boolean {
  return text[at] === "-" && /^\s?$/.test(text.charAt(at + 1));
}

/** Where the next line begins that is not deeper than `column`. */
function nextInColumn(text: string, at: number, column: number): number {
  while (at < text.length) {
    let first = at + 1;
    while (text[first] === " ") first++;
    const isNothing = "\r\n#".includes(text[first] ?? "\n");
    if (!isNothing && first - at - 1 <= column) {
      return first - at - 1 === column ? first : text.length;
    }
    at = endOfLine(text, first);
  }
  return at;
}

/** What stands between brackets, apart by commas. */
function* flowEntries(text: string, start: number): Iterable<Entry> {
  const isMap = text[start] === "{";
  for (let at = start; text[at] !== undefined;) {
    const first = startOfValue(text, at + 1);
    const end = endOfFlow(text, first);
    if (first === end && text[end] !== ",") return;
    const { key, end: value } = isMap ? keyAt(text, first, end) : NO_KEY;
    yield isMap
      ? { start: first, ...key !== undefined && { key }, value }
      : { start: first, value: first };
    if (text[end] !== ",") return;
    at = end;
  }
}

/** Where the comma or the bracket behind an entry is. */
function endOfFlow(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const char = text[at]!;
    if (depth === 0 && ",]}".includes(char)) return at;
    if (char === "[" || char === "{") depth++;
    else if (char === "]" || char === "}") depth--;
    else if (isQuote(text, at)) at = endOfQuoted(text, at) - 1;
    else if (char === "#" && /\s/.test(text.charAt(at - 1))) {
      at = endOfLine(text, at);
    }
  }
  return text.length;
}

const NO_KEY = { key: undefined, end: 0 };

/** The key that begins at `start`, and where its colon ends. */
function keyAt(
  text: string,
  start: number,
  limit: number,
): { readonly key: string | undefined; readonly end: number } {
  if (isQuote(text, start)) {
    const end = endOfQuoted(text, start);
    const colon = text.indexOf(":", end);
    const key = unquoted(text.slice(start, end));
    return colon >= 0 && colon < limit ? { key, end: colon + 1 } : NO_KEY;
  }
  let colon = text.indexOf(":", start);
  while (
    colon >= 0 && colon < limit && !/^[\s,\]}]?$/.test(text.charAt(colon + 1))
  ) {
    colon = text.indexOf(":", colon + 1);
  }
  if (colon < 0 || colon >= limit) return NO_KEY;
  return { key: text.slice(start, colon).trim(), end: colon + 1 };
}

/** A quote inside of a word is a letter. */
function isQuote(text: string, at: number): boolean {
  return (text[at] === '"' || text[at] === "'") &&
    /^[\s,:[\]{}-]?$/.test(text.charAt(at - 1));
}

function endOfQuoted(text: string, start: number): number {
  const quote = text[start]!;
  for (let at = start + 1; at < text.length; at++) {
    if (quote === '"' && text[at] === "\\") at++;
    else if (text[at] === quote) {
      if (quote === '"' || text[at + 1] !== quote) return at + 1;
      at++;
    }
  }
  return text.length;
}

function unquoted(text: string): string {
  if (text[0] === "'") return text.slice(1, -1).replaceAll("''", "'");
  try {
    return JSON.parse(text);
  } catch {
    return text.slice(1, -1);
  }
}

function endOfLine(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end < 0 ? text.length : end;
}
