/**
 * How a terminal is written to: sections, facts, warnings, and sentences in lines
 * that fit. What they say is made by `admin/view`.
 *
 * @module
 */

import type { Warning } from "../../proto/admin/status_answer.ts";
import { wrapped } from "../../platform/text/columns.ts";
import { ageText } from "../../platform/text/quantities.ts";
import {
  cellText,
  type Fact,
  nextCommand,
  type Note,
  type Section,
  type Table,
  toneOf,
} from "../view/cells.ts";
import type { Page } from "./page.ts";
import { fittedTable, ofOthers } from "./text_table.ts";

/** Sections, each behind an empty line. */
export function sectionLines(
  page: Page,
  sections: readonly Section[],
): string[] {
  return sections.flatMap(({ heading, summary, table, more, notes = [] }) => {
    const [first = "", ...rest] = sentenceLines(page, summary, HEADING_INDENT);
    const head = page.paint(heading.padEnd(HEADING_INDENT.length), "bold") +
      first.trimStart();
    return [
      "",
      head.trimEnd(),
      ...rest,
      ...table === undefined ? [] : tableLines(page, table),
      ...more === undefined
        ? []
        : sentenceLines(indented(page, 2), more, "").map(twoIn),
      ...notes.flatMap((note) => noteLines(page, note)),
    ];
  });
}

/** The width of the longest heading, and a gap. */
const HEADING_INDENT = " ".repeat(12);

/** Two columns in; a sentence about a row is below it. */
function tableLines(page: Page, { columns, rows, below }: Table): string[] {
  return fittedTable(columns, rows, indented(page, 2)).flatMap((line, at) => {
    const sentence = below?.[at - 1] ?? "";
    return [
      twoIn(line),
      ...sentence === "" ? [] : sentenceLines(page, sentence, "    "),
    ];
  });
}

function twoIn(line: string): string {
  return `  ${line}`;
}

function noteLines(page: Page, { text, label, below }: Note): string[] {
  if (label === undefined) return sentenceLines(page, text, "  ");
  const name = ofOthers(label.text);
  const [first = "", ...rest] = sentenceLines(page, `${name}: ${text}`, "    ");
  const said = first.trimStart();
  return [
    `  ${page.paint(said.slice(0, name.length), label.tone)}` +
    said.slice(name.length),
    ...rest,
    ...below === undefined ? [] : sentenceLines(page, below, "    "),
  ];
}

/** A name and its value in each line. */
export function factLines(page: Page, facts: readonly Fact[]): string[] {
  return facts.flatMap(({ name, value }) => {
    const [first = "", ...rest] = sentenceLines(
      page,
      factText(value),
      FACT_INDENT,
    );
    const label = page.paint(name.padEnd(FACT_INDENT.length), "dim");
    return [label + first.trimStart(), ...rest];
  });
}

/** The width of the longest name of a fact, and a gap. */
const FACT_INDENT = " ".repeat(13);

/** The text of a fact, in one line. */
export function factText(value: Fact["value"]): string {
  return Array.isArray(value)
    ? value.join(", ") || "-"
    : cellText(value as Exclude<Fact["value"], readonly string[]>);
}

/** Text may not be squeezed into fewer columns than that. */
const SENTENCE_COLUMNS_MIN = 20;

/** A sentence in lines that begin with `indent`. */
export function sentenceLines(
  page: Page,
  sentence: string,
  indent: string,
): string[] {
  const columns = Math.max(
    SENTENCE_COLUMNS_MIN,
    page.columns - indent.length,
  );
  return wrapped(ofOthers(sentence), columns).map((line) => indent + line);
}

/** The text beside a table. */
export function dimLines(page: Page, sentence: string): string[] {
  return sentenceLines(page, sentence, "")
    .map((line) => page.paint(line, "dim"));
}

/** A page for indented text. */
export function indented(page: Page, columns: number): Page {
  const left = Math.max(SENTENCE_COLUMNS_MIN, page.columns - columns);
  return { ...page, columns: left };
}

/** Lines of warnings: what, how bad, since when, and the next command. */
export function warningLines(
  page: Page,
  warnings: readonly Warning[],
  nowMs: number,
): string[] {
  return warnings.flatMap((warning) => {
    const { severity, code, message, since } = warning;
    const label = severity + (code === undefined ? "" : `[${ofOthers(code)}]`);
    const age = since === undefined
      ? ""
      : ` (for ${ageText(nowMs - Date.parse(since))})`;
    const [first = "", ...rest] = sentenceLines(
      indented(page, 2),
      `${label}: ${message}${age}`,
      "",
    );
    const next = nextCommand(warning);
    return [
      page.paint(first.slice(0, label.length), toneOf(severity)) +
      first.slice(label.length),
      ...rest.map(twoIn),
      ...next === undefined ? [] : sentenceLines(page, `next: ${next}`, "  ")
        .map((line) => page.paint(line, "dim")),
    ];
  });
}
