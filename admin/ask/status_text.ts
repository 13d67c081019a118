/**
 * What a program says of itself at a glance, on a terminal: its head, what needs
 * attention, and the sections of `admin/view/status.ts`.
 *
 * @module
 */

import { programName } from "../../proto/admin/status_answer.ts";
import { columnsOf, cutToColumns } from "../../platform/text/columns.ts";
import { toneOf } from "../view/cells.ts";
import {
  programFacts,
  programState,
  type Shown,
  statusSections,
} from "../view/status.ts";
import type { Page } from "./page.ts";
import {
  factText,
  sectionLines,
  sentenceLines,
  warningLines,
} from "./sections.ts";
import { ofOthers } from "./text_table.ts";

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
