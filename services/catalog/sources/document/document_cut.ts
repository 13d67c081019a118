/**
 * Cuts a document of services into the texts of its services, without reading
 * them: of a thousand one or two have changed since the last document, and only
 * those are worth the trouble.
 *
 * It knows the two shapes that programs and most people write, JSON and YAML in
 * blocks, and gives up on whatever else there is; then the document is read as a
 * whole. What it cuts may still be wrong inside. It never cuts elsewhere than a
 * whole reading would: a text that is cut short, such as one with half of a quoted
 * text, cannot be read on its own, nor can one that names an anchor of another.
 *
 * @module
 */

export interface CutDocument {
  /** JSON: each an object. YAML: each a list of one map. */
  readonly language: "json" | "yaml";
  readonly services: readonly string[];
}

/** @returns `undefined` when it has another shape, or no services. */
export function cutDocument(text: string): CutDocument | undefined {
  const isJson = /^\s*\{/.test(text);
  const services = isJson ? cutJson(text) : cutYaml(text);
  if (services === undefined || services.length === 0) return undefined;
  return { language: isJson ? "json" : "yaml", services };
}

// --- JSON ------------------------------------------------------------------------

const JSON_HEAD = /[ \t\r\n]*\{[ \t\r\n]*"services"[ \t\r\n]*:[ \t\r\n]*\[/y;
const JSON_GAP = /[ \t\r\n]*/y;
const JSON_COMMA = /[ \t\r\n]*,[ \t\r\n]*/y;
const JSON_TAIL = /[ \t\r\n]*\][ \t\r\n]*\}[ \t\r\n]*$/y;

function cutJson(text: string): string[] | undefined {
  const services: string[] = [];
  let at = endOfMatch(JSON_HEAD, text, 0);
  if (at < 0) return undefined;
  at = endOfMatch(JSON_GAP, text, at);
  while (at >= 0) {
    const end = text.charCodeAt(at) === OPEN_OBJECT
      ? endOfNested(text, at)
      : -1;
    if (end < 0) return undefined;
    services.push(text.slice(at, end));
    if (endOfMatch(JSON_TAIL, text, end) >= 0) return services;
    at = endOfMatch(JSON_COMMA, text, end);
  }
  return undefined;
}

/** @returns Where it ends; -1: not here. */
function endOfMatch(pattern: RegExp, text: string, start: number): number {
  pattern.lastIndex = start;
  return pattern.test(text) ? pattern.lastIndex : -1;
}

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const [OPEN_LIST, CLOSE_LIST] = [0x5b, 0x5d];
const [OPEN_OBJECT, CLOSE_OBJECT] = [0x7b, 0x7d];

/**
 * @param start Of an object or a list.
 * @returns What is behind its last bracket; -1: there is none.
 */
function endOfNested(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at);
        if (at < 0) return -1;
        break;
      case OPEN_LIST:
      case OPEN_OBJECT:
        depth++;
        break;
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        depth--;
        if (depth === 0) return at + 1;
    }
  }
  return -1;
}

/**
 * @param start Of the quote.
 * @returns Where the closing quote is; -1: there is none.
 */
function endOfString(text: string, start: number): number {
  for (let at = start;;) {
    at = text.indexOf('"', at + 1);
    if (at < 0) return -1;
    let escapes = 0;
    while (text.charCodeAt(at - 1 - escapes) === BACKSLASH) escapes++;
    if (escapes % 2 === 0) return at;
  }
}

// --- YAML ------------------------------------------------------------------------

const YAML_NOTHING = /^[ \t\r]*(?:#.*)?$/;
const YAML_HEAD = /^services:[ \t\r]*(?:#.*)?$/;
const YAML_ITEM = /^( *)-(?=[ \t\r]|$)/;

function cutYaml(text: string): string[] | undefined {
  const services: string[] = [];
  let isHeadSeen = false;
  let indent = -1;
  let begun = -1;
  for (let at = 0; at < text.length;) {
    const newline = text.indexOf("\n", at);
    const end = newline < 0 ? text.length : newline + 1;
    const isDeeper = begun >= 0 && isIndented(text, at, indent);
    if (!isDeeper) {
      const line = text.slice(at, newline < 0 ? end : newline);
      const item = isHeadSeen ? YAML_ITEM.exec(line)?.[1]?.length : undefined;
      if (item !== undefined && (indent < 0 || item === indent)) {
        if (begun >= 0) services.push(text.slice(begun, at));
        indent = item;
        begun = at;
      } else if (!isHeadSeen && YAML_HEAD.test(line)) isHeadSeen = true;
      else if (!YAML_NOTHING.test(line)) return undefined;
    }
    at = end;
  }
  if (begun >= 0) services.push(text.slice(begun));
  return services;
}

/** Whether the line at `start` begins with more than `indent` blanks. */
function isIndented(text: string, start: number, indent: number): boolean {
  for (let at = start; at <= start + indent; at++) {
    if (text.charCodeAt(at) !== 0x20) return false;
  }
  return true;
}
