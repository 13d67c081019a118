/**
 * Links for people, as servers see those of agents, and agents those to servers.
 *
 * @module
 */

import type { LinkInfo } from "../../proto/admin/status_answer.ts";
import {
  countText,
  millisText,
  rateText,
} from "../../platform/text/quantities.ts";
import type { Page, Tone } from "./page.ts";
import { type Cell, type Column, fittedTable } from "./text_table.ts";
import { ageOf, indented, sentenceLines } from "./sections.ts";

const STATE_TONES: Readonly<Record<LinkInfo["state"], Tone>> = {
  linked: "good",
  draining: "warn",
  still: "warn",
  connecting: "warn",
  waiting: "bad",
};

interface LinkColumn extends Column {
  readonly of: (link: LinkInfo, nowMs: number) => Cell;
}

const COLUMNS: readonly LinkColumn[] = [
  { heading: "PEER", least: 8, rank: 3, of: ({ peer }) => peer || "-" },
  { heading: "ADDRESS", least: 14, of: ({ address }) => address },
  {
    heading: "STATE",
    of: ({ state }) => ({ text: state, tone: STATE_TONES[state] ?? "warn" }),
  },
  {
    heading: "FOR",
    side: "right",
    rank: 5,
    of: ({ since }, nowMs) => ageOf(since, nowMs),
  },
  { heading: "CARRIER", rank: 9, of: ({ carrier }) => carrier },
  {
    heading: "RTT",
    side: "right",
    rank: 4,
    of: ({ roundTripMs }) =>
      roundTripMs === undefined ? "-" : millisText(roundTripMs),
  },
  {
    heading: "SILENT",
    side: "right",
    rank: 8,
    of: ({ silentMs }) => silentMs === undefined ? "-" : millisText(silentMs),
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
    of: ({ toTargetRate }) =>
      toTargetRate === undefined ? "-" : rateText(toTargetRate),
  },
  {
    heading: "RATE FROM",
    side: "right",
    rank: 10,
    of: ({ fromTargetRate }) =>
      fromTargetRate === undefined ? "-" : rateText(fromTargetRate),
  },
];

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

/** The lines of a table, two columns in; what is wrong is below its row. */
export function linkLines(
  page: Page,
  links: readonly LinkInfo[],
  nowMs: number,
): string[] {
  // What is known of no link says nothing.
  const columns = COLUMNS.filter(({ of }) =>
    links.some((link) => of(link, nowMs) !== "-")
  );
  const [head = "", ...rows] = fittedTable(
    columns,
    links.map((link) => columns.map(({ of }) => of(link, nowMs))),
    indented(page, 2),
  );
  return [
    `  ${head}`,
    ...rows.flatMap((row, at) => {
      const problem = problemText(links[at]!);
      return [
        `  ${row}`,
        ...problem === "" ? [] : sentenceLines(page, problem, "    "),
      ];
    }),
  ];
}
