/**
 * Tunneled connections for people: one in a row.
 *
 * @module
 */

import type {
  ConduitInfo,
  ConduitsAnswer,
} from "../../proto/admin/conduit_answer.ts";
import {
  ageText,
  counted,
  countText,
  millisText,
  rateText,
  sizeText,
} from "../../platform/text/quantities.ts";
import type { Page } from "./page.ts";
import { type Cell, type Column, fittedTable } from "./text_table.ts";
import { dimLines } from "./sections.ts";

/** Which columns there are of a conduit. */
export type ConduitColumns =
  | "few"
  /** Without ids: a person points at rows. */
  | "top"
  | "all"
  | "wide";

interface ConduitColumn extends Column {
  readonly of: (conduit: ConduitInfo) => Cell;
  /** Absent: everywhere. */
  readonly only?: keyof typeof SHOWN_IN;
  /** It says nothing of this one; left out where it says nothing of any. */
  readonly isSpare?: (conduit: ConduitInfo, which: ConduitColumns) => boolean;
}

/** Where there are which columns. */
const SHOWN_IN = {
  id: ["all", "wide"],
  all: ["top", "all", "wide"],
  wide: ["wide"],
} as const satisfies Record<string, readonly ConduitColumns[]>;

const COLUMNS: readonly ConduitColumn[] = [
  { heading: "ID", only: "id", rank: 1, of: ({ id }) => id },
  {
    heading: "CALLER",
    least: 8,
    of: callerText,
  },
  { heading: "CALLS FROM", only: "wide", of: ({ from = "-" }) => from },
  {
    heading: "NODE",
    least: 8,
    isSpare: ({ node, forwardedTo }) => (node ?? forwardedTo) === undefined,
    of: ({ node, forwardedTo }) =>
      node ?? (forwardedTo === undefined ? "-" : `via ${forwardedTo}`),
  },
  {
    heading: "SERVICE",
    least: 10,
    rank: 3,
    isSpare: ({ caller }, which) => which !== "wide" && caller !== "",
    of: ({ service = "-" }) => service,
  },
  { heading: "TARGET", least: 18, endsWith: /:\d+$/, of: targetText },
  { heading: "STATE", only: "wide", of: ({ state }) => state },
  {
    heading: "AGE",
    side: "right",
    rank: 4,
    of: ({ ageMs }) => ageText(ageMs),
  },
  {
    heading: "TO",
    side: "right",
    only: "all",
    rank: 8,
    of: ({ toTargetBytes }) => sizeText(toTargetBytes),
  },
  {
    heading: "FROM",
    side: "right",
    only: "all",
    rank: 8,
    of: ({ fromTargetBytes }) => sizeText(fromTargetBytes),
  },
  {
    heading: "RATE TO",
    side: "right",
    rank: 5,
    of: ({ toTargetRate }) => rateText(toTargetRate),
  },
  {
    heading: "RATE FROM",
    side: "right",
    rank: 2,
    of: ({ fromTargetRate }) => rateText(fromTargetRate),
  },
  {
    heading: "RTT",
    side: "right",
    rank: 9,
    of: ({ roundTripMs }) => orDash(roundTripMs, millisText),
  },
  {
    heading: "DIAL",
    side: "right",
    only: "wide",
    of: ({ dialMs }) => orDash(dialMs, millisText),
  },
  {
    heading: "WINDOW",
    side: "right",
    only: "all",
    rank: 10,
    of: ({ windowBytes }) => orDash(windowBytes, sizeText),
  },
  {
    heading: "QUEUE",
    side: "right",
    only: "all",
    rank: 7,
    of: ({ queuedBytes }) => orDash(queuedBytes, sizeText),
  },
  {
    heading: "IDLE",
    side: "right",
    only: "wide",
    of: ({ idleMs }) => ageText(idleMs),
  },
  { heading: "WAITS FOR", rank: 6, of: waitCell },
];

/** The lines of a table. */
export function conduitLines(
  page: Page,
  conduits: readonly ConduitInfo[],
  which: ConduitColumns,
): string[] {
  const columns = conduitColumns(which, conduits);
  return fittedTable(
    columns,
    conduits.map((conduit) => columns.map(({ of }) => of(conduit))),
    page,
  );
}

/** `tunnel conn list`. */
export function conduitsText(
  page: Page,
  { conduits, total }: ConduitsAnswer,
  isWide: boolean,
): string {
  if (total === 0) return "No connections.\n";
  const lines = conduitLines(page, conduits, isWide ? "wide" : "all");
  const more = total - conduits.length;
  if (more > 0) {
    const text = `${countText(conduits.length)} of ${
      counted(total, "connection")
    }; --limit shows more`;
    lines.push(...dimLines(page, text));
  }
  return `${lines.join("\n")}\n`;
}

function conduitColumns(
  which: ConduitColumns,
  conduits: readonly ConduitInfo[],
): readonly ConduitColumn[] {
  return COLUMNS.filter(({ only, isSpare }) => {
    const places: readonly ConduitColumns[] | undefined = only &&
      SHOWN_IN[only];
    const isEmpty = isSpare !== undefined &&
      conduits.every((conduit) => isSpare(conduit, which));
    return !isEmpty && (places?.includes(which) ?? true);
  });
}

/** Who asked for it; of local callers their socket, without its directory. */
export function callerText({ caller, from }: ConduitInfo): string {
  return caller.replace(/^socket .*\//, "") || from || "-";
}

/** What nearly all are, TCP, is not said. */
export function targetText({ target }: ConduitInfo): string {
  return target.replace(/^tcp /, "");
}

/** Why nothing moves, if nothing does. */
function waitCell({ state, waitsFor }: ConduitInfo): Cell {
  if (state === "dialing") return { text: "the dial", tone: "warn" };
  if (waitsFor === undefined) return state === "open" ? "" : state;
  const text = waitsFor === "nothing" ? "nothing" : `the ${waitsFor}`;
  return waitsFor === "nothing" ? text : { text, tone: "warn" };
}

function orDash(
  value: number | undefined,
  text: (value: number) => string,
): string {
  return value === undefined ? "-" : text(value);
}
