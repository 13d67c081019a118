/**
 * What passed through a server lately, for people: a dozen rows, whatever the
 * time that they are about.
 *
 * @module
 */

import type {
  HistoryAnswer,
  HistorySample,
} from "../../proto/admin/history_answer.ts";
import {
  ageText,
  countText,
  millisText,
  rateText,
} from "../../platform/text/quantities.ts";
import type { Page } from "./page.ts";
import { fittedTable } from "./text_table.ts";
import { indented, section, whenText } from "./sections.ts";

const ROWS_MAX = 12;

/** Means of what a row is about; of connections and of slowness the most. */
const COLUMNS = [
  { heading: "CONNECTIONS", of: most("conduits", countText) },
  { heading: "TO TARGETS", of: mean("toTargetRate", rateText) },
  { heading: "FROM THEM", of: mean("fromTargetRate", rateText) },
  { heading: "DIALS/S", of: mean("dialRate", (rate) => rate.toFixed(1)) },
  { heading: "HALF IN", of: most("dialP50Ms", millisText) },
  { heading: "99% IN", of: most("dialP99Ms", millisText) },
  { heading: "FAILED", of: sum("failedDials") },
] as const;

/** The lines of a section; none where nothing was asked for. */
export function historyLines(
  page: Page,
  history: HistoryAnswer | undefined,
): string[] {
  if (history === undefined) return [];
  const { samples, stepMs } = history;
  const each = Math.max(1, Math.ceil(samples.length / ROWS_MAX));
  const rows: string[][] = [];
  for (let from = 0; from < samples.length; from += each) {
    const part = samples.slice(from, from + each);
    rows.push([whenText(part[0]!.at), ...COLUMNS.map(({ of }) => of(part))]);
  }
  const table = fittedTable(
    [
      { heading: "FROM" },
      ...COLUMNS.map(({ heading }, at) => ({
        ...{ heading, side: "right" as const },
        rank: COLUMNS.length - at,
      })),
    ],
    rows,
    indented(page, 2),
  );
  return section(
    page,
    "History",
    samples.length === 0
      ? "nothing is kept yet"
      : `${ageText(samples.length * stepMs)}, a row for ${
        ageText(each * stepMs)
      }`,
    samples.length === 0 ? [] : table.map((line) => `  ${line}`),
  );
}

type Part = readonly HistorySample[];
type Field = Exclude<keyof HistorySample, "at">;

function valuesOf(part: Part, field: Field): number[] {
  return part.flatMap((sample) => sample[field] ?? []);
}

function most(field: Field, text: (value: number) => string) {
  return (part: Part): string => {
    const values = valuesOf(part, field);
    return values.length === 0 ? "-" : text(Math.max(...values));
  };
}

function mean(field: Field, text: (value: number) => string) {
  return (part: Part): string => text(total(part, field) / part.length);
}

function sum(field: Field) {
  return (part: Part): string => countText(total(part, field));
}

function total(part: Part, field: Field): number {
  return valuesOf(part, field).reduce((sum, value) => sum + value, 0);
}
