/**
 * A server's recent traffic: a dozen rows, whatever time they cover.
 *
 * @module
 */

import type {
  HistoryAnswer,
  HistorySample,
} from "../../proto/admin/list_answers.ts";
import {
  ageText,
  countText,
  millisText,
  rateText,
} from "../../platform/text/quantities.ts";
import { type Column, type Section, tableOf, whenText } from "./cells.ts";

const ROWS_MAX = 12;

type Part = readonly HistorySample[];
type Field = Exclude<keyof HistorySample, "at">;

/**
 * Means over the time of a row; for connections and slowness, the highest
 * value.
 */
const NUMBERS: readonly Column<Part>[] = [
  { heading: "CONNECTIONS", of: most("conduits", countText) },
  { heading: "TO TARGETS", of: mean("toTargetRate", rateText) },
  { heading: "FROM THEM", of: mean("fromTargetRate", rateText) },
  { heading: "DIALS/S", of: mean("dialRate", (rate) => rate.toFixed(1)) },
  { heading: "HALF IN", of: most("dialP50Ms", millisText) },
  { heading: "99% IN", of: most("dialP99Ms", millisText) },
  { heading: "FAILED", of: (part) => countText(total(part, "failedDials")) },
];

const COLUMNS: readonly Column<Part>[] = [
  { heading: "FROM", of: (part) => whenText(part[0]!.at) },
  ...NUMBERS.map((column, at): Column<Part> => ({
    ...column,
    side: "right",
    rank: NUMBERS.length - at,
  })),
];

/** No section where nothing was asked for. */
export function historySections(
  history: HistoryAnswer | undefined,
): readonly Section[] {
  if (history === undefined) return [];
  const { samples, stepMs } = history;
  if (samples.length === 0) {
    return [{ heading: "History", summary: "nothing is kept yet" }];
  }
  const each = Math.ceil(samples.length / ROWS_MAX);
  const parts: Part[] = [];
  for (let from = 0; from < samples.length; from += each) {
    parts.push(samples.slice(from, from + each));
  }
  return [{
    heading: "History",
    summary: `${ageText(samples.length * stepMs)}, a row for ${
      ageText(each * stepMs)
    }`,
    table: tableOf(COLUMNS, parts),
  }];
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

function total(part: Part, field: Field): number {
  return valuesOf(part, field).reduce((sum, value) => sum + value, 0);
}

function valuesOf(part: Part, field: Field): number[] {
  return part.flatMap((sample) => sample[field] ?? []);
}
