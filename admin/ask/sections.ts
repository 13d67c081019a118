/**
 * Pieces that all answers for people are made of: sections, sentences under
 * them, warnings, and since when something is so.
 *
 * @module
 */

import type { Warning } from "../../proto/admin/status_answer.ts";
import { wrapped } from "../../platform/text/columns.ts";
import { ageText } from "../../platform/text/quantities.ts";
import type { Page, Tone } from "./page.ts";
import { ofOthers } from "./text_table.ts";

/** A heading, what is said beside it, and the lines below. */
export function section(
  page: Page,
  heading: string,
  summary: string,
  lines: readonly string[] = [],
): string[] {
  const [first = "", ...rest] = sentenceLines(
    page,
    summary,
    " ".repeat(HEADING_COLUMNS),
  );
  const head = page.paint(heading.padEnd(HEADING_COLUMNS), "bold") +
    first.trimStart();
  return ["", head.trimEnd(), ...rest, ...lines];
}

/** As wide as the longest heading, and a gap. */
const HEADING_COLUMNS = 12;

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

/** What is said beside a table. */
export function dimLines(page: Page, sentence: string): string[] {
  return sentenceLines(page, sentence, "")
    .map((line) => page.paint(line, "dim"));
}

/** A page for what stands further to the right. */
export function indented(page: Page, columns: number): Page {
  return {
    columns: Math.max(SENTENCE_COLUMNS_MIN, page.columns - columns),
    isPlain: page.isPlain,
    paint: (text, tone) => page.paint(text, tone),
  };
}

const SEVERITY_TONES: Readonly<Record<Warning["severity"], Tone>> = {
  error: "bad",
  warning: "warn",
  notice: "bold",
};

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
    const tone = SEVERITY_TONES[severity] ?? "warn";
    const next = nextCommand(warning);
    return [
      page.paint(first.slice(0, label.length), tone) +
      first.slice(label.length),
      ...rest.map((line) => `  ${line}`),
      ...next === undefined ? [] : sentenceLines(page, `next: ${next}`, "  ")
        .map((line) => page.paint(line, "dim")),
    ];
  });
}

/** What tells more of a warning. */
function nextCommand({ node, code }: Warning): string | undefined {
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

/** How long something has been so; `-`: nobody knows. */
export function ageOf(since: string | undefined, nowMs: number): string {
  const ms = nowMs - Date.parse(since ?? "");
  return Number.isNaN(ms) ? "-" : ageText(ms);
}

/** When that was, to the second: `2026-11-22 10:03:12`. */
export function whenText(at: string | undefined): string {
  return at === undefined ? "-" : at.replace("T", " ").replace(/\.\d+/, "");
}
