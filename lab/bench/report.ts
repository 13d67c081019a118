/**
 * Results as rows, and rows as text for people and as a table for the docs.
 *
 * @module
 */

import {
  type Assessment,
  compare,
  isSpoiled,
  type Outcome,
  stand,
} from "./comparison.ts";
import type { ContenderName, Figure, Metric } from "./metric.ts";
import type { Measured } from "./rounds.ts";

/** One figure beside one peer, or by itself. */
export interface Row {
  readonly metric: string;
  readonly title: string;
  readonly figure: string;
  readonly unit: string;
  /** `undefined`: no ratio, a number of A's by itself. */
  readonly peer: ContenderName | undefined;
  readonly ours: number;
  readonly theirs: number;
  readonly ratio: number;
  readonly lowest: number;
  readonly highest: number;
  readonly assessment: Assessment;
  /** Why there are no numbers. */
  readonly spoiled: string | undefined;
}

const NO_ASSESSMENT: Assessment = { bar: "", isReached: undefined };

/** Every figure of a metric, beside every peer that has it. */
export function rowsOf(
  name: string,
  metric: Metric,
  measured: Measured,
  a: ContenderName,
  peers: readonly ContenderName[],
): Row[] {
  return metric.figures.flatMap((figure) => {
    const base = {
      metric: name,
      title: metric.title,
      figure: figure.title,
      unit: figure.unit,
    };
    const rows = figure.isOursAlone
      ? []
      : besidePeers(base, figure, measured, a, peers);
    const isBound = figure.limit !== undefined && a === "ours";
    if (rows.length > 0 && !isBound) return rows;
    const own = alone(base, figure, measured.alone, a);
    return own === undefined ? rows : [...rows, own];
  });
}

type Base = Pick<Row, "metric" | "title" | "figure" | "unit">;

const NO_NUMBERS = {
  ours: NaN,
  theirs: NaN,
  ratio: NaN,
  lowest: NaN,
  highest: NaN,
  assessment: NO_ASSESSMENT,
};

function besidePeers(
  base: Base,
  figure: Figure,
  measured: Measured,
  a: ContenderName,
  peers: readonly ContenderName[],
): Row[] {
  const rows: Row[] = [];
  for (const [place, pairs] of measured.pairs) {
    const peer = peers[place]!;
    const result = compare(figure, pairs, a, peer);
    if ("spoiled" in result) {
      rows.push({ ...base, ...NO_NUMBERS, peer, spoiled: result.spoiled });
      continue;
    }
    const { ours, theirs, ratio, lowest, highest } = result;
    // The target itself has no CPU of a tunnel, and so on: nothing to show.
    if (Number.isNaN(ratio) && result.bar === "") continue;
    const numbers = { ours, theirs, ratio, lowest, highest };
    const spoiled = Number.isNaN(ratio) ? "a number is missing" : undefined;
    rows.push({ ...base, ...numbers, peer, assessment: result, spoiled });
  }
  return rows;
}

function alone(
  base: Base,
  figure: Figure,
  outcomes: readonly Outcome[],
  a: ContenderName,
): Row | undefined {
  const result = stand(figure, outcomes, a);
  if ("spoiled" in result) {
    const { spoiled } = result;
    return { ...base, ...NO_NUMBERS, peer: undefined, spoiled };
  }
  const { ours, lowest, highest } = result;
  if (Number.isNaN(ours) && result.bar === "") return undefined;
  return {
    ...base,
    ...{ ours, theirs: NaN, ratio: NaN, lowest, highest },
    peer: undefined,
    assessment: result,
    spoiled: Number.isNaN(ours) ? "the number is missing" : undefined,
  };
}

/** Whether every number is there and every bar reached. */
export function isGood(rows: readonly Row[]): boolean {
  return rows.every((row) =>
    row.spoiled === undefined && row.assessment.isReached !== false
  );
}

/** For a terminal: a line per row, under the title of its metric. */
export function renderText(rows: readonly Row[]): string {
  const lines: string[] = [];
  let title = "";
  for (const row of rows) {
    if (row.title !== title) lines.push(`${row.metric}: ${row.title}`);
    title = row.title;
    const head = `  ${row.figure.padEnd(16)} ${(row.peer ?? "").padEnd(13)}`;
    if (row.spoiled !== undefined) {
      lines.push(`${head} no ratio: ${row.spoiled}`);
      continue;
    }
    const theirs = row.peer === undefined ? "" : format(row.theirs);
    lines.push(
      `${head} ${format(row.ours).padStart(8)} ${theirs.padStart(8)} ${
        row.unit.padEnd(10)
      } ${ratioOf(row).padEnd(22)} ${inWords(row.assessment, "MISSED")}`
        .trimEnd(),
    );
  }
  return lines.join("\n");
}

/** For the docs: a Markdown table, so that nobody types numbers. */
export function renderMarkdown(
  rows: readonly Row[],
  caption: string,
): string {
  const lines = [
    caption,
    "",
    "| load | figure | ours | peer | its | ratio | bar |",
    "|---|---|---|---|---|---|---|",
  ];
  let title = "";
  for (const row of rows) {
    const load = row.title === title ? "" : row.title;
    title = row.title;
    const unit = row.unit === "" ? "" : ` ${row.unit}`;
    const cells = row.spoiled === undefined
      ? [
        format(row.ours),
        row.peer ?? "",
        row.peer === undefined ? "" : format(row.theirs),
        ratioOf(row),
        inWords(row.assessment, "**missed**"),
      ]
      : ["", row.peer ?? "", "", `no ratio: ${oneLine(row.spoiled)}`, ""];
    lines.push(`| ${load} | ${row.figure}${unit} | ${cells.join(" | ")} |`);
  }
  return `${lines.join("\n")}\n`;
}

function ratioOf(row: Row): string {
  const spread = `[${format(row.lowest)}–${format(row.highest)}]`;
  return row.peer === undefined ? spread : `${format(row.ratio)}x ${spread}`;
}

function inWords({ bar, isReached }: Assessment, missed: string): string {
  if (isReached === undefined) return "";
  return `${bar} ${isReached ? "reached" : missed}`;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").replaceAll("|", "/");
}

/** One run in a line, to follow along. */
export function brief(outcome: Outcome, figures: readonly Figure[]): string {
  if (isSpoiled(outcome)) return `SPOILED, ${outcome.spoiled}`;
  return figures
    .filter((figure) => outcome[figure.key] !== undefined)
    .map((figure) =>
      `${figure.title} ${format(outcome[figure.key]!)} ${figure.unit}`
        .trimEnd()
    )
    .join(", ");
}

/** Three digits that matter. */
export function format(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 1000) return Math.round(value).toString();
  return Number(value.toPrecision(3)).toString();
}
