/**
 * Answers on a terminal: a node or a tunneled connection in a row, all that is
 * known of one node, and what a program says of itself at a glance.
 *
 * @module
 */

import type {
  ConduitInfo,
  ConduitsAnswer,
  NodeDetail,
  NodesAnswer,
} from "../../proto/admin/node_answer.ts";
import { columnsOf, cutToColumns } from "../../platform/text/columns.ts";
import { counted, countText } from "../../platform/text/quantities.ts";
import { tableOf, toneOf } from "../view/cells.ts";
import {
  NODE_COLUMNS,
  nodeFacts,
  nodeSections,
  sinceText,
} from "../view/nodes.ts";
import type { Page } from "./page.ts";
import {
  dimLines,
  factLines,
  factText,
  sectionLines,
  sentenceLines,
  warningLines,
} from "./sections.ts";
import { fittedTable, ofOthers } from "./text_table.ts";
import { type ConduitColumns, conduitColumns } from "../view/conduits.ts";
import { programName } from "../../proto/admin/status_answer.ts";
import {
  programFacts,
  programState,
  type Shown,
  statusSections,
} from "../view/status.ts";

/** `tunnel node list`. */
export function nodesText(
  page: Page,
  { nodes, total }: NodesAnswer,
  { isWide, nowMs }: { readonly isWide: boolean; readonly nowMs: number },
): string {
  if (total === 0) {
    return "No nodes. tunnel token create --node NAME prints the line that " +
      "makes one join.\n";
  }
  const shown = NODE_COLUMNS.filter((column) => isWide || !column.isWide);
  const { columns, rows } = tableOf(shown, nodes, nowMs);
  const lines = fittedTable(columns, rows, page);
  if (nodes.length < total) {
    const text = `${countText(nodes.length)} of ${counted(total, "node")}`;
    lines.push(...dimLines(page, text));
  }
  return `${lines.join("\n")}\n`;
}

/** `tunnel node describe NAME`. */
export function nodeText(page: Page, node: NodeDetail, nowMs: number): string {
  const { state } = node;
  const name = cutToColumns(
    `node ${ofOthers(node.name)}`,
    page.columns - state.length - 2,
  );
  const since = sinceText(node, nowMs);
  return [
    `${page.paint(name, "bold")}  ${page.paint(state, toneOf(state))}`,
    ...since === "" ? [] : sentenceLines(page, since, "  "),
    // A warning's link to this node would lead to this very text.
    ...warningLines(
      page,
      node.warnings.map(({ node: _, ...warning }) => warning),
      nowMs,
    ),
    "",
    ...factLines(page, nodeFacts(node)),
    ...sectionLines(page, nodeSections(node, nowMs)),
  ].join("\n") + "\n";
}

/** The lines of a table. */
export function conduitLines(
  page: Page,
  conduits: readonly ConduitInfo[],
  which: ConduitColumns,
): string[] {
  const { columns, rows } = tableOf(conduitColumns(which, conduits), conduits);
  return fittedTable(columns, rows, page);
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

/** `tunnel status` of one program. */
export function statusText(page: Page, status: Shown): string {
  // Ages are by the clock of the machine that answered.
  const nowMs = Date.parse(status.program.now);
  return [
    ...headLines(page, status),
    "",
    ...status.warnings.length === 0
      ? [page.paint("Nothing needs attention.", "good")]
      : warningLines(page, status.warnings, nowMs),
    ...sectionLines(page, statusSections(status, nowMs)),
  ].join("\n") + "\n";
}

function headLines(page: Page, { program }: Shown): string[] {
  const word = programState(program);
  const facts = programFacts(program)
    .map(({ name, value }) => `${name} ${ofOthers(factText(value))}`)
    .join(", ");
  const name = `${program.program} ${ofOthers(programName(program))}`;
  const where = Object.entries(program.addresses)
    .map(([use, address]) => `${use} ${address}`).join("  ");
  const state = `${name}  ${word}`;
  const isOne = columnsOf(`${state}  ${facts}`) <= page.columns;
  const head = columnsOf(state) > page.columns
    ? page.paint(cutToColumns(state, page.columns), toneOf(word))
    : page.paint(name, "bold") + "  " + page.paint(word, toneOf(word));
  return [
    isOne ? `${head}  ${facts}` : head,
    ...isOne ? [] : sentenceLines(page, facts, "  "),
    ...where === ""
      ? []
      : sentenceLines(page, where, "").map((line) => page.paint(line, "dim")),
  ];
}
