/**
 * Tunneled connections: what is shown of one, and in which order.
 *
 * @module
 */

import type { ConduitInfo } from "../../proto/admin/node_answer.ts";
import {
  ageText,
  millisText,
  rateText,
  sizeText,
} from "../../platform/text/quantities.ts";
import { type Cell, type Column, orDash, stateCell } from "./cells.ts";

/** Which columns there are of a conduit. */
export type ConduitColumns =
  | "few"
  /** Without ids: a person points at rows. */
  | "top"
  | "all"
  | "wide";

interface ConduitColumn extends Column<ConduitInfo> {
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

/** All that is shown of one. */
export const CONDUIT_COLUMNS: readonly ConduitColumn[] = [
  { heading: "ID", only: "id", rank: 1, of: ({ id }) => id },
  { heading: "CALLER", least: 8, part: "under", of: callerText },
  { heading: "CALLS FROM", only: "wide", of: ({ from = "-" }) => from },
  {
    heading: "NODE",
    least: 8,
    part: "under",
    isSpare: (conduit) => nodeText(conduit) === "-",
    order: nodeText,
    of: (conduit) => {
      const { node } = conduit;
      return node === undefined
        ? nodeText(conduit)
        : { text: node, to: { view: "nodes", name: node } };
    },
  },
  {
    heading: "SERVICE",
    least: 10,
    rank: 3,
    isSpare: ({ caller }, which) => which !== "wide" && caller !== "",
    of: ({ service = "-" }) => service,
  },
  {
    heading: "TARGET",
    least: 18,
    endsWith: /:\d+$/,
    part: "name",
    order: targetText,
    of: (conduit) => ({
      text: targetText(conduit),
      to: { view: "conduits", name: conduit.id },
    }),
  },
  { heading: "STATE", only: "wide", of: ({ state }) => stateCell(state) },
  {
    heading: "AGE",
    side: "right",
    rank: 4,
    order: ({ startedAt }) => -Date.parse(startedAt),
    of: ({ startedAt, ageMs }, nowMs) =>
      ageText(Number.isNaN(nowMs) ? ageMs : nowMs - Date.parse(startedAt)),
  },
  {
    heading: "TO",
    side: "right",
    only: "all",
    rank: 8,
    order: ({ toTargetBytes }) => toTargetBytes,
    of: ({ toTargetBytes }) => sizeText(toTargetBytes),
  },
  {
    heading: "FROM",
    side: "right",
    only: "all",
    rank: 8,
    order: ({ fromTargetBytes }) => fromTargetBytes,
    of: ({ fromTargetBytes }) => sizeText(fromTargetBytes),
  },
  {
    heading: "RATE TO",
    side: "right",
    rank: 5,
    part: "value",
    unit: "to",
    order: ({ toTargetRate }) => toTargetRate,
    of: ({ toTargetRate }) => rateText(toTargetRate),
  },
  {
    heading: "RATE FROM",
    side: "right",
    rank: 2,
    part: "value",
    unit: "from",
    order: ({ fromTargetRate }) => fromTargetRate,
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
    order: ({ queuedBytes }) => queuedBytes,
    of: ({ queuedBytes }) => orDash(queuedBytes, sizeText),
  },
  {
    heading: "IDLE",
    side: "right",
    only: "wide",
    order: ({ idleMs }) => idleMs,
    of: ({ idleMs }) => ageText(idleMs),
  },
  { heading: "WAITS FOR", rank: 6, of: waitCell },
];

/** The columns that say something of these. */
export function conduitColumns(
  which: ConduitColumns,
  conduits: readonly ConduitInfo[],
): readonly Column<ConduitInfo>[] {
  return CONDUIT_COLUMNS.filter(({ only, isSpare }) => {
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

function nodeText({ node, forwardedTo }: ConduitInfo): string {
  return node ?? (forwardedTo === undefined ? "-" : `via ${forwardedTo}`);
}

/** Why nothing moves, if nothing does. */
function waitCell({ state, waitsFor }: ConduitInfo): Cell {
  if (state === "dialing") return { text: "the dial", tone: "warn" };
  if (waitsFor === undefined) return state === "open" ? "" : state;
  const text = waitsFor === "nothing" ? "nothing" : `the ${waitsFor}`;
  return waitsFor === "nothing" ? text : { text, tone: "warn" };
}
