/**
 * Links, as servers see those of agents, and agents those to servers.
 *
 * @module
 */

import type { LinkInfo } from "../../proto/admin/status_answer.ts";
import {
  countText,
  millisText,
  rateText,
} from "../../platform/text/quantities.ts";
import {
  ageOf,
  type Column,
  column,
  numbers,
  orDash,
  stateCell,
  type Table,
  tableOf,
} from "./cells.ts";

const COLUMNS: readonly Column<LinkInfo>[] = [
  column("PEER", ({ peer }) => peer || "-", {
    least: 8,
    rank: 3,
    part: "under",
  }),
  column("ADDRESS", ({ address }) => address, { least: 14, part: "name" }),
  column("STATE", ({ state }) => stateCell(state), { part: "under" }),
  numbers("FOR", ({ since }, nowMs) => ageOf(since, nowMs), {
    rank: 5,
    part: "under",
  }),
  column("CARRIER", ({ carrier }) => carrier, { rank: 9, part: "under" }),
  numbers("RTT", ({ roundTripMs }) => orDash(roundTripMs, millisText), {
    rank: 4,
    part: "value",
  }),
  numbers("SILENT", ({ silentMs }) => orDash(silentMs, millisText), {
    rank: 8,
  }),
  numbers("CONNS", ({ conduits }) => countText(conduits), { rank: 6 }),
  numbers("RATE TO", ({ toTargetRate }) => orDash(toTargetRate, rateText), {
    rank: 10,
  }),
  numbers(
    "RATE FROM",
    ({ fromTargetRate }) => orDash(fromTargetRate, rateText),
    { rank: 10 },
  ),
];

/** A link's problem is below its row. */
export function linkTable(links: readonly LinkInfo[], nowMs: number): Table {
  // A column without a known value is left out.
  const columns = COLUMNS.filter(({ of }) =>
    links.some((link) => of(link, nowMs) !== "-")
  );
  return { ...tableOf(columns, links, nowMs), below: links.map(problemText) };
}

function problemText({ problem, failures, nextAttemptMs }: LinkInfo): string {
  const parts = [
    ...problem === undefined ? [] : [problem],
    ...failures === undefined || failures < 2
      ? []
      : [`failed ${countText(failures)} times`],
    ...nextAttemptMs === undefined
      ? []
      : [`again in ${millisText(nextAttemptMs)}`],
  ];
  return parts.join("; ");
}
