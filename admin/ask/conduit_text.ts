/**
 * Tunneled connections on a terminal: one in a row.
 *
 * @module
 */

import type {
  ConduitInfo,
  ConduitsAnswer,
} from "../../proto/admin/node_answer.ts";
import { counted, countText } from "../../platform/text/quantities.ts";
import { tableOf } from "../view/cells.ts";
import { type ConduitColumns, conduitColumns } from "../view/conduits.ts";
import type { Page } from "./page.ts";
import { dimLines } from "./sections.ts";
import { fittedTable } from "./text_table.ts";

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
