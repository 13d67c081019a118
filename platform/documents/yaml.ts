/**
 * YAML, of which JSON is a part: values, texts of values, and where in a text a
 * value stands. The only file that knows the parser.
 *
 * The parser is named by its address: the client library has this file as well,
 * and who imports that from another project does not have our import map.
 *
 * @module
 */

// @ts-types="./js_yaml.d.ts"
import { dump, load, type State, YAMLException } from "npm:js-yaml@4.3.2";
import type { DocumentPath } from "./field_error.ts";

/** @throws {SyntaxError} With line and column when `text` is not YAML. */
export function parse(text: string): unknown {
  try {
    return load(text) ?? null;
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const { reason, mark } = error;
    const at = mark && ` at line ${mark.line + 1}, column ${mark.column + 1}`;
    throw new SyntaxError(reason + (at ?? ""));
  }
}

/** A value as YAML. */
export function stringify(value: unknown): string {
  return dump(value);
}

/** A place in a text, both counted from 1. */
export interface TextPosition {
  readonly line: number;
  readonly column: number;
}

/** What the parser has read, and where. */
interface Node extends TextPosition {
  kind: State["kind"];
  value: unknown;
  /** Items; keys and values in turn; or the same again. */
  readonly inner: Node[];
}

/**
 * Where everything of a text stands, for messages. An entry of a map stands
 * where its key does; a missing value, and the value of an alias, stands where
 * it is missing. The text is parsed again for that, because positions are
 * needed only for errors.
 */
export function positionsIn(
  text: string,
): (place: DocumentPath) => TextPosition {
  const root = outlineOf(text);
  return (place) => {
    let found = firstOf(root);
    let node: Node | undefined = root;
    for (const part of place) {
      const entry: Entry | undefined = entryOf(node, part);
      if (entry === undefined) break;
      found = entry.at;
      node = entry.value;
      if (node === undefined) break;
    }
    const { line, column } = found;
    return { line, column };
  };
}

/** All that could be read. */
function outlineOf(text: string): Node {
  const root: Node = { line: 1, column: 1, kind: null, value: null, inner: [] };
  const open = [root];
  const listener = (event: "open" | "close", state: State) => {
    if (event === "open") {
      const { line, position, lineStart, kind, result: value } = state;
      const column = position - lineStart + 1;
      const node: Node = { line: line + 1, column, kind, value, inner: [] };
      open.at(-1)!.inner.push(node);
      open.push(node);
    } else {
      const node = open.pop()!;
      node.kind = state.kind;
      node.value = state.result;
    }
  };
  try {
    load(text, { json: true, listener });
  } catch {
    // It may be JSON of a kind that YAML is not; what was read has its places.
  }
  const [document = root] = root.inner;
  return document;
}

/** Where the first thing of a document is, behind comments and directives. */
function firstOf(document: Node): Node {
  let first = document;
  while (first.inner.length > 0) [first] = first.inner as [Node];
  return first;
}

/** Where an item or a key is, and what it says; absent: nothing. */
interface Entry {
  readonly at: Node;
  readonly value: Node | undefined;
}

function entryOf(node: Node, part: string | number): Entry | undefined {
  const { kind, value, inner } = node;
  const [first] = inner;
  if (kind === "mapping" || kind === "sequence") {
    // What might have been a key was read as such first.
    if (inner.length === 1 && first!.value === value) {
      return entryOf(first!, part);
    }
    return kind === "mapping" ? keyIn(node, part) : itemIn(node, part);
  }
  return undefined;
}

/** A key without a value may have no node for that. */
function keyIn({ value, inner }: Node, part: string | number) {
  const map = value as Readonly<Record<string, unknown>>;
  for (let at = 0; at < inner.length;) {
    const key = inner[at++]!;
    const name = String(key.value);
    const isSaid = inner[at]?.value === map[name] || name === "<<";
    const said = isSaid ? inner[at++] : undefined;
    if (name === part) return { at: key, value: said };
  }
  return undefined;
}

/** An empty item has no node. */
function itemIn({ value, inner }: Node, part: string | number) {
  let next = 0;
  for (const [at, item] of (value as readonly unknown[]).entries()) {
    const isSaid = inner[next]?.value === item;
    const node = isSaid ? inner[next++] : undefined;
    if (at === part) return node && { at: node, value: node };
  }
  return undefined;
}
