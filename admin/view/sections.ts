/**
 * What all views are made of: sections with a heading, a summary, a table and
 * sentences; warnings with the command that tells more; since when something is
 * so.
 *
 * @module
 */

import type { Warning } from "../../proto/admin/status_answer.ts";
import { ageText } from "../../platform/text/quantities.ts";
import type { Cell, Table, Tone } from "./cells.ts";

/** One part of what a program says of itself. */
export interface Section {
  readonly heading: string;
  /** What is said beside the heading. */
  readonly summary: string;
  readonly table?: Table;
  /** How many rows there are besides, and the command that shows them. */
  readonly more?: string;
  readonly notes?: readonly Note[];
  /** Which view of the page has all of it, and in which state. */
  readonly place?: { readonly view: string; readonly state?: string };
}

/** A sentence of a section. */
export interface Note {
  readonly text: string;
  /** What stands before it. */
  readonly label?: { readonly text: string; readonly tone: Tone };
  /** A sentence of its own below it. */
  readonly below?: string;
  /** The node that it is about. */
  readonly node?: string;
}

/** One thing that is known of something, by its name. */
export interface Fact {
  readonly name: string;
  /** Several of them; none is `-`. */
  readonly value: Cell | readonly string[];
}

/** The command that tells more of a warning. */
export function nextCommand({ node, code }: Warning): string | undefined {
  if (node !== undefined) {
    const verb = code === "TUN402" ? "doctor node" : "node describe";
    return `tunnel ${verb} ${shellWord(node)}`;
  }
  return code === undefined ? undefined : `tunnel explain ${code}`;
}

/** A name as it can be typed: peers choose it, and a shell may obey it. */
export function shellWord(word: string): string {
  return /^[\w./:@%+=,-]+$/.test(word)
    ? word
    : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** How long something has been so; `-`: that is not known. */
export function ageOf(since: string | undefined, nowMs: number): string {
  const ms = nowMs - Date.parse(since ?? "");
  return Number.isNaN(ms) ? "-" : ageText(ms);
}

/** When that was, to the second: `2026-11-22 10:03:12Z`. */
export function whenText(at: string | undefined): string {
  return at === undefined ? "-" : at.replace("T", " ").replace(/\.\d+/, "");
}
