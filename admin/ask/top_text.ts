/**
 * The screen of `tunnel top`, as lines.
 *
 * @module
 */

import type { ConduitsAnswer } from "../../proto/admin/node_answer.ts";
import {
  programName,
  type StatusAnswer,
} from "../../proto/admin/status_answer.ts";
import {
  columnsOf,
  cutToColumns,
  inColumns,
} from "../../platform/text/columns.ts";
import { counted, countText } from "../../platform/text/quantities.ts";
import type { Page } from "./page.ts";
import { cutBefore, ofOthers } from "./text_table.ts";
import { callerText, targetText } from "../view/conduits.ts";
import { briefTraffic } from "../view/status.ts";
import { conduitLines } from "./answer_text.ts";
import { indented } from "./sections.ts";
import { chosenRow, type TopState } from "./top_state.ts";

/** The content of the screen at one moment. */
export interface TopFacts {
  readonly status: StatusAnswer;
  readonly conduits: ConduitsAnswer;
}

/** Lines above the table and below it, the table's own heading included. */
const FRAME_ROWS = 5;

/** How many connections a screen has room for. */
export function roomIn(rows: number): number {
  return Math.max(1, rows - FRAME_ROWS);
}

/** The output without a screen: the whole list, without keys. */
export function blockText(
  page: Page,
  facts: TopFacts,
  asked: Pick<TopState, "sort" | "node">,
): string {
  const { conduits } = facts.conduits;
  const lines = [
    ...headLines(page, facts, asked),
    ...conduits.length === 0 ? [] : conduitLines(page, conduits, "all"),
  ];
  return `${lines.join("\n")}\n`;
}

/** A screen: exactly this many lines, none wider than the page. */
export function screenLines(
  page: Page,
  rows: number,
  state: TopState,
  facts: TopFacts,
): string[] {
  const room = roomIn(rows);
  const lines = [
    ...headLines(page, facts, state),
    ...state.mode.kind === "help"
      ? ["", ...HELP.map((line) => cutToColumns(line, page.columns))]
      : tableLines(page, facts.conduits, state, room),
  ].slice(0, rows - 1);
  while (lines.length < rows - 1) lines.push("");
  return [...lines, lastLine(page, state)];
}

function headLines(
  page: Page,
  { status, conduits }: TopFacts,
  { sort, node }: Pick<TopState, "sort" | "node">,
): string[] {
  const { program, now } = status.program;
  const time = /T(\d\d:\d\d:\d\d)/.exec(now)?.[1] ?? "";
  const nodes = status.nodes === undefined
    ? ""
    : `${countText(status.nodes.online)} online, ` +
      `${countText(status.nodes.offline)} offline; `;
  const [worst] = status.warnings;
  const attention = worst === undefined
    ? "nothing needs attention"
    : `${worst.severity}: ${ofOthers(worst.message)}`;
  const of = node === "" ? "" : ` of ${ofOthers(node)}`;
  const cut = (text: string) => cutToColumns(text, page.columns);
  return [
    page.paint(
      cut(
        `${time}  ${briefTraffic(status.traffic)}  ${program} ${
          ofOthers(programName(status.program))
        }`,
      ),
      "bold",
    ),
    worst === undefined ? cut(nodes + attention) : page.paint(
      cut(nodes + attention),
      worst.severity === "error" ? "bad" : "warn",
    ),
    page.paint(
      cut(
        `${countText(conduits.conduits.length)} of ${
          counted(conduits.total, "connection")
        }${of}, by ${sort}`,
      ),
      "dim",
    ),
  ];
}

/** The part of the table that the chosen row is in. */
function tableLines(
  page: Page,
  { conduits }: ConduitsAnswer,
  state: TopState,
  room: number,
): string[] {
  if (conduits.length === 0) return ["", "No connections."];
  const chosen = chosenRow(state, conduits);
  const first = Math.max(
    0,
    Math.min(chosen - Math.floor(room / 2), conduits.length - room),
  );
  const shown = conduits.slice(first, first + room);
  // One row has its own colour, over which no other would be seen.
  const plain = { columns: page.columns, isPlain: true, paint: String };
  if (page.isPlain) {
    return conduitLines(indented(plain, 2), shown, "top")
      .map((line, at) => (at - 1 === chosen - first ? "> " : "  ") + line);
  }
  const lines = conduitLines(page, shown, "top");
  const bare = conduitLines(plain, shown, "top");
  return lines.map((line, at) =>
    at - 1 === chosen - first
      ? page.paint(inColumns(bare[at]!, page.columns), "chosen")
      : line
  );
}

/** Least width of a target, however long the name of its node is. */
const TARGET_MIN = 12;

const KEYS = "q quit  k kill  f node  r b a i u sort  ? keys";

const HELP = [
  "up down page-up page-down home end   choose a connection",
  "k                                    end it, after a y",
  "f or /                               show those of one node; escape: all",
  "r b a i u, left right                sort by rate, bytes, age, idle, queue",
  "space                                ask at once",
  "q or Ctrl-C                          quit",
  "",
  "any key goes back",
];

function lastLine(page: Page, { mode, said }: TopState): string {
  const cut = (text: string) => cutToColumns(ofOthers(text), page.columns);
  switch (mode.kind) {
    case "filter":
      return cut(`node (empty: all): ${mode.text}_`);
    case "confirm": {
      const { node, id } = mode.conduit;
      const rest = `${node === undefined ? "" : ` at ${node}`}? y/n`;
      const target = cutBefore(
        ofOthers(targetText(mode.conduit)),
        /:\d+$/,
        Math.max(TARGET_MIN, page.columns - "End ".length - rest.length),
      );
      const question = cut(`End ${target}${rest}`);
      const who = cutToColumns(
        ofOthers(`  (${callerText(mode.conduit)}, ${id})`),
        page.columns - columnsOf(question),
      );
      return page.paint(`${question}${who}`.trimEnd(), "warn");
    }
    default:
      return said === "" ? page.paint(cut(KEYS), "dim") : cut(said);
  }
}
