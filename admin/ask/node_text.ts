/**
 * Nodes on a terminal: one in a row, and all that is known of one.
 *
 * @module
 */

import type { NodeDetail, NodesAnswer } from "../../proto/admin/node_answer.ts";
import { cutToColumns } from "../../platform/text/columns.ts";
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
  sectionLines,
  sentenceLines,
  warningLines,
} from "./sections.ts";
import { fittedTable, ofOthers } from "./text_table.ts";

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
    // What tells more of this node is what is read here.
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
