/**
 * The state of `tunnel top`, the keys in a terminal's bytes, and the effect of
 * each key. Pure: it knows neither a terminal nor a server.
 *
 * @module
 */

import {
  CONDUIT_SORTS,
  type ConduitInfo,
  type ConduitSort,
} from "../../proto/admin/node_answer.ts";

/** The key of each. */
const SORT_KEYS: ReadonlyMap<string, ConduitSort> = new Map([
  ["r", "rate"],
  ["b", "bytes"],
  ["a", "age"],
  ["i", "idle"],
  ["u", "queue"],
]);

/** What keys mean now. */
export type Mode =
  | { readonly kind: "list" }
  /** The name of a node is typed. */
  | { readonly kind: "filter"; readonly text: string }
  /** Whether this one is to be ended. */
  | { readonly kind: "confirm"; readonly conduit: ConduitInfo }
  | { readonly kind: "help" };

export interface TopState {
  readonly sort: ConduitSort;
  /** Only this node's connections; empty: all. */
  readonly node: string;
  /** The chosen one; it may be gone. */
  readonly chosenId?: string | undefined;
  /** Which row the chosen one had when it was last seen. */
  readonly chosenRow: number;
  readonly mode: Mode;
  /** The result of the last action. */
  readonly said: string;
}

/** The action of a key. */
export type Effect =
  | { readonly kind: "quit" }
  /** Another question than before. */
  | { readonly kind: "ask" }
  | { readonly kind: "kill"; readonly id: string };

/** A name is as long as a peer likes; what a person types is not. */
const FILTER_LENGTH_MAX = 253;

const LIST: Mode = { kind: "list" };

export function firstState(sort: ConduitSort, node: string): TopState {
  return { sort, node, chosenRow: 0, mode: LIST, said: "" };
}

/** The row of the chosen one, which stays with it when rows move. */
export function chosenRow(
  { chosenId, chosenRow }: TopState,
  conduits: readonly ConduitInfo[],
): number {
  const at = conduits.findIndex(({ id }) => id === chosenId);
  return at >= 0 ? at : Math.max(0, Math.min(chosenRow, conduits.length - 1));
}

/** Applies a key. @param pageRows The rows of a screen. */
export function press(
  state: TopState,
  key: Key,
  conduits: readonly ConduitInfo[],
  pageRows: number,
): { readonly state: TopState; readonly effect?: Effect } {
  if ("name" in key && key.name === "interrupt") {
    return { state, effect: { kind: "quit" } };
  }
  switch (state.mode.kind) {
    case "filter":
      return pressInFilter(state, state.mode.text, key);
    case "confirm":
      return pressInConfirm(state, state.mode.conduit, key);
    case "help":
      return { state: { ...state, mode: LIST } };
    case "list":
      return "name" in key
        ? pressNamed(state, key.name, conduits, pageRows)
        : pressCharacter(state, key.character, conduits);
  }
}

type Pressed = ReturnType<typeof press>;

function pressNamed(
  state: TopState,
  name: NamedKey,
  conduits: readonly ConduitInfo[],
  pageRows: number,
): Pressed {
  const row = chosenRow(state, conduits);
  const moves: Partial<Record<NamedKey, number>> = {
    "up": row - 1,
    "down": row + 1,
    "page-up": row - pageRows,
    "page-down": row + pageRows,
    "home": 0,
    "end": conduits.length - 1,
  };
  const to = moves[name];
  if (to !== undefined) return { state: moved(state, to, conduits) };
  const step = name === "right" || name === "tab"
    ? 1
    : name === "left"
    ? -1
    : 0;
  if (step !== 0) {
    const at = CONDUIT_SORTS.indexOf(state.sort) + step + CONDUIT_SORTS.length;
    return sorted(state, CONDUIT_SORTS[at % CONDUIT_SORTS.length]!);
  }
  if (name === "escape" && state.node !== "") return filtered(state, "");
  return { state: { ...state, said: "" } };
}

function pressCharacter(
  state: TopState,
  character: string,
  conduits: readonly ConduitInfo[],
): Pressed {
  const sort = SORT_KEYS.get(character);
  if (sort !== undefined) return sorted(state, sort);
  switch (character) {
    case "q":
      return { state, effect: { kind: "quit" } };
    case "k": {
      const conduit = conduits[chosenRow(state, conduits)];
      return conduit === undefined
        ? { state: { ...state, said: "there is no connection to end" } }
        : { state: { ...state, mode: { kind: "confirm", conduit }, said: "" } };
    }
    case "f":
    case "/":
      return {
        state: { ...state, mode: { kind: "filter", text: state.node } },
      };
    case "h":
    case "?":
      return { state: { ...state, mode: { kind: "help" } } };
    case " ":
      return { state: { ...state, said: "" }, effect: { kind: "ask" } };
    default:
      return { state: { ...state, said: "" } };
  }
}

function pressInFilter(state: TopState, text: string, key: Key): Pressed {
  const typed = (text: string): Pressed => ({
    state: { ...state, mode: { kind: "filter", text } },
  });
  if ("character" in key) {
    return text.length < FILTER_LENGTH_MAX
      ? typed(text + key.character)
      : { state };
  }
  switch (key.name) {
    case "backspace":
      return typed(Array.from(text).slice(0, -1).join(""));
    case "enter":
      return filtered(state, text.trim());
    case "escape":
      return { state: { ...state, mode: LIST } };
    default:
      return { state };
  }
}

/** Anything but a clear yes is a no. */
function pressInConfirm(
  state: TopState,
  { id }: ConduitInfo,
  key: Key,
): Pressed {
  const isYes = "character" in key && /^[yY]$/.test(key.character);
  return isYes
    ? { state: { ...state, mode: LIST }, effect: { kind: "kill", id } }
    : { state: { ...state, mode: LIST, said: "nothing was ended" } };
}

function sorted(state: TopState, sort: ConduitSort): Pressed {
  return { state: { ...state, sort, said: "" }, effect: { kind: "ask" } };
}

function filtered(state: TopState, node: string): Pressed {
  return {
    state: { ...state, node, mode: LIST, said: "" },
    effect: { kind: "ask" },
  };
}

function moved(
  state: TopState,
  to: number,
  conduits: readonly ConduitInfo[],
): TopState {
  const row = Math.max(0, Math.min(to, conduits.length - 1));
  const chosenId = conduits[row]?.id;
  return { ...state, chosenRow: row, chosenId, said: "" };
}

/** Keys that have no character. */
type NamedKey =
  | typeof SEQUENCES[number][1]
  | typeof CONTROLS[number][1];

/** One key: its name, or the character that it types. */
export type Key =
  | { readonly name: NamedKey }
  | { readonly character: string };

/** What follows `ESC [` or `ESC O` (ECMA-48, and xterm's and the VT220's). */
const SEQUENCES = [
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
] as const;

const CONTROLS = [
  ["\x1b", "escape"],
  ["\x03", "interrupt"],
  ["\x04", "interrupt"],
  ["\r", "enter"],
  ["\n", "enter"],
  ["\x7f", "backspace"],
  ["\b", "backspace"],
  ["\t", "tab"],
] as const;

type Names = ReadonlyMap<string, NamedKey>;
const OF_SEQUENCES: Names = new Map(SEQUENCES);
const OF_CONTROLS: Names = new Map(CONTROLS);

// deno-lint-ignore no-control-regex -- it is what a terminal sends
const SEQUENCE = /^\x1b[\[O]([<-?]?[0-9;:]*[A-Za-z~])/;

/**
 * The keys in one read. A sequence comes in one piece: an incomplete one is the
 * key Escape, and an unknown one is ignored.
 */
export function keysOf(text: string): Key[] {
  const keys: Key[] = [];
  let rest = text;
  while (rest !== "") {
    const sequence = SEQUENCE.exec(rest);
    if (sequence !== null) {
      // Modifiers (Shift, Ctrl) say nothing here.
      const name = OF_SEQUENCES.get(sequence[1]!.replace(/;\d+|^1(?=;)/g, ""));
      if (name !== undefined) keys.push({ name });
      rest = rest.slice(sequence[0].length);
      continue;
    }
    const [character = ""] = rest;
    rest = rest.slice(character.length);
    const name = OF_CONTROLS.get(character);
    if (name !== undefined) keys.push({ name });
    else if (character >= " ") keys.push({ character });
  }
  return keys;
}
