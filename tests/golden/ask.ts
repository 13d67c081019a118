// deno-lint-ignore-file no-console -- a command that says what it wrote.
/**
 * What people are shown of answers, at three widths of a terminal: a change of a
 * renderer shows in its diff what becomes of each.
 *
 * `ask_test.ts` compares. After a change that is meant:
 *
 * ```
 * deno run --allow-read --allow-write tests/golden/ask.ts --update
 * ```
 *
 * @module
 */

import {
  conduitsText,
  nodesText,
  nodeText,
  statusText,
} from "../../admin/ask/answer_text.ts";
import { firstState } from "../../admin/ask/top_state.ts";
import { screenLines } from "../../admin/ask/top_text.ts";
import type { Page } from "../../admin/ask/page.ts";
import {
  AGENT_STATUS,
  CONDUITS_ANSWER,
  NODE,
  NODES,
  NOW,
  PROXY_STATUS,
  SERVER_STATUS,
} from "../support/rigs/ask_answers.ts";

export const GOLDEN_WIDTHS = [40, 80, 200];

const NOW_MS = Date.parse(NOW);
const TOP_ROWS = 12;

/** By file, but for the width. */
export const GOLDEN_TEXTS: Readonly<Record<string, (page: Page) => string>> = {
  server: (page) => statusText(page, SERVER_STATUS),
  agent: (page) => statusText(page, AGENT_STATUS),
  proxy: (page) => statusText(page, PROXY_STATUS),
  nodes: (page) => nodesText(page, NODES, { isWide: false, nowMs: NOW_MS }),
  nodes_wide: (page) => nodesText(page, NODES, { isWide: true, nowMs: NOW_MS }),
  node: (page) => nodeText(page, NODE, NOW_MS),
  conduits: (page) => conduitsText(page, CONDUITS_ANSWER, false),
  top: (page) =>
    screenLines(page, TOP_ROWS, firstState("rate", ""), {
      status: SERVER_STATUS,
      conduits: CONDUITS_ANSWER,
    }).map((line) => `${line}\n`).join(""),
};

/** Where a golden file is. */
export function goldenFile(name: string, columns: number): URL {
  return new URL(`./ask/${name}_${columns}.txt`, import.meta.url);
}

/** A terminal without colours. */
export function goldenPage(columns: number): Page {
  return { columns, isPlain: true, paint: (text) => text };
}

if (import.meta.main && Deno.args.includes("--update")) {
  await Deno.mkdir(new URL("./ask/", import.meta.url), { recursive: true });
  for (const [name, textOf] of Object.entries(GOLDEN_TEXTS)) {
    for (const columns of GOLDEN_WIDTHS) {
      const file = goldenFile(name, columns);
      await Deno.writeTextFile(file, textOf(goldenPage(columns)));
      console.log(`wrote ${file.pathname}`);
    }
  }
}
