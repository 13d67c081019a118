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
  orDash,
  stateCell,
  type Table,
  tableOf,
} from "./cells.ts";

const COLUMNS: readonly Column<LinkInfo>[] = [
  {
    heading: "PEER",
    least: 8,
    rank: 3,
    part: "under",
    of: ({ peer }) => peer || "-",
  },
  { heading: "ADDRESS", least: 14, part: "name", of: ({ address }) => address },
  { heading: "STATE", part: "under", of: ({ state }) => stateCell(state) },
  {
    heading: "FOR",
    side: "right",
    rank: 5,
    part: "under",
    of: ({ since }, nowMs) => ageOf(since, nowMs),
  },
  {
    heading: "CARRIER",
    rank: 9,
    part: "under",
    of: ({ carrier }) => carrier,
  },
  {
    heading: "RTT",
    side: "right",
    rank: 4,
    part: "value",
    of: ({ roundTripMs }) => orDash(roundTripMs, millisText),
  },
  {
    heading: "SILENT",
    side: "right",
    rank: 8,
    of: ({ silentMs }) => orDash(silentMs, millisText),
  },
  {
    heading: "CONNS",
    side: "right",
    rank: 6,
    of: ({ conduits }) => countText(conduits),
  },
  {
    heading: "RATE TO",
    side: "right",
    rank: 10,
    of: ({ toTargetRate }) => orDash(toTargetRate, rateText),
  },
  {
    heading: "RATE FROM",
    side: "right",
    rank: 10,
    of: ({ fromTargetRate }) => orDash(fromTargetRate, rateText),
  },
];

/** What is wrong with a link stands below its row. */
export function linkTable(links: readonly LinkInfo[], nowMs: number): Table {
  // What is known of no link says nothing.
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
