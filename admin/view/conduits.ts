/**
 * Tunneled connections: the columns of a list, and its order.
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
import {
  type Cell,
  type Column,
  column,
  numbers,
  orDash,
  stateCell,
} from "./cells.ts";

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
  /** Empty for this one; the column is left out if it is empty for all. */
  readonly isSpare?: (conduit: ConduitInfo, which: ConduitColumns) => boolean;
}

/** Which columns are in which tables. */
const SHOWN_IN = {
  id: ["all", "wide"],
  all: ["top", "all", "wide"],
  wide: ["wide"],
} as const satisfies Record<string, readonly ConduitColumns[]>;

/** All that is shown of one. */
export const CONDUIT_COLUMNS: readonly ConduitColumn[] = [
  column("ID", ({ id }) => id, { only: "id", rank: 1 }),
  column("CALLER", callerText, { least: 8, part: "under" }),
  column("CALLS FROM", ({ from = "-" }) => from, { only: "wide" }),
  column("NODE", (conduit) => {
    const { node } = conduit;
    return node === undefined
      ? nodeText(conduit)
      : { text: node, to: { view: "nodes", name: node } };
  }, {
    least: 8,
    part: "under",
    isSpare: (conduit) => nodeText(conduit) === "-",
    order: nodeText,
  }),
  column("SERVICE", ({ service = "-" }) => service, {
    least: 10,
    rank: 3,
    isSpare: ({ caller }, which) => which !== "wide" && caller !== "",
  }),
  column("TARGET", (conduit) => ({
    text: targetText(conduit),
    to: { view: "conduits", name: conduit.id },
  }), { least: 18, endsWith: /:\d+$/, part: "name", order: targetText }),
  column("STATE", ({ state }) => stateCell(state), { only: "wide" }),
  numbers(
    "AGE",
    ({ startedAt, ageMs }, nowMs) =>
      ageText(Number.isNaN(nowMs) ? ageMs : nowMs - Date.parse(startedAt)),
    { rank: 4, order: ({ startedAt }) => -Date.parse(startedAt) },
  ),
  numbers("TO", ({ toTargetBytes }) => sizeText(toTargetBytes), {
    only: "all",
    rank: 8,
    order: ({ toTargetBytes }) => toTargetBytes,
  }),
  numbers("FROM", ({ fromTargetBytes }) => sizeText(fromTargetBytes), {
    only: "all",
    rank: 8,
    order: ({ fromTargetBytes }) => fromTargetBytes,
  }),
  numbers("RATE TO", ({ toTargetRate }) => rateText(toTargetRate), {
    rank: 5,
    part: "value",
    unit: "to",
    order: ({ toTargetRate }) => toTargetRate,
  }),
  numbers("RATE FROM", ({ fromTargetRate }) => rateText(fromTargetRate), {
    rank: 2,
    part: "value",
    unit: "from",
    order: ({ fromTargetRate }) => fromTargetRate,
  }),
  numbers("RTT", ({ roundTripMs }) => orDash(roundTripMs, millisText), {
    rank: 9,
  }),
  numbers("DIAL", ({ dialMs }) => orDash(dialMs, millisText), { only: "wide" }),
  numbers("WINDOW", ({ windowBytes }) => orDash(windowBytes, sizeText), {
    only: "all",
    rank: 10,
  }),
  numbers("QUEUE", ({ queuedBytes }) => orDash(queuedBytes, sizeText), {
    only: "all",
    rank: 7,
    order: ({ queuedBytes }) => queuedBytes,
  }),
  numbers("IDLE", ({ idleMs }) => ageText(idleMs), {
    only: "wide",
    order: ({ idleMs }) => idleMs,
  }),
  column("WAITS FOR", waitCell, { rank: 6 }),
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

/** The caller; for local callers their socket, without its directory. */
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
