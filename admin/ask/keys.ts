/**
 * What a person types, read from the bytes that a terminal in raw mode sends.
 *
 * @module
 */

/** Keys that have no character. */
export type NamedKey =
  | "up"
  | "down"
  | "left"
  | "right"
  | "page-up"
  | "page-down"
  | "home"
  | "end"
  | "enter"
  | "escape"
  | "backspace"
  | "tab"
  | "interrupt";

/** One key: its name, or the character that it types. */
export type Key =
  | { readonly name: NamedKey }
  | { readonly character: string };

/** What follows `ESC [` or `ESC O` (ECMA-48, and xterm's and the VT220's). */
const SEQUENCES: ReadonlyMap<string, NamedKey> = new Map([
  ["A", "up"],
  ["B", "down"],
  ["C", "right"],
  ["D", "left"],
  ["H", "home"],
  ["F", "end"],
  ["1~", "home"],
  ["4~", "end"],
  ["5~", "page-up"],
  ["6~", "page-down"],
  ["7~", "home"],
  ["8~", "end"],
]);

const CONTROLS: ReadonlyMap<string, NamedKey> = new Map([
  ["\x03", "interrupt"],
  ["\x04", "interrupt"],
  ["\r", "enter"],
  ["\n", "enter"],
  ["\x7f", "backspace"],
  ["\b", "backspace"],
  ["\t", "tab"],
]);

// deno-lint-ignore no-control-regex -- it is what a terminal sends
const SEQUENCE = /^\x1b[\[O]([<-?]?[0-9;:]*[A-Za-z~])/;

/**
 * The keys in what one read gave. A sequence comes in one piece: what ends
 * within one is the key Escape, and what nobody knows is nothing.
 */
export function keysOf(text: string): Key[] {
  const keys: Key[] = [];
  let rest = text;
  while (rest !== "") {
    const sequence = SEQUENCE.exec(rest);
    if (sequence !== null) {
      // Modifiers (Shift, Ctrl) say nothing here.
      const name = SEQUENCES.get(sequence[1]!.replace(/;\d+|^1(?=;)/g, ""));
      if (name !== undefined) keys.push({ name });
      rest = rest.slice(sequence[0].length);
      continue;
    }
    const [character = ""] = rest;
    rest = rest.slice(character.length);
    const name = character === "\x1b" ? "escape" : CONTROLS.get(character);
    if (name !== undefined) keys.push({ name });
    else if (character >= " ") keys.push({ character });
  }
  return keys;
}
