// deno-lint-ignore-file no-console -- a command that prints its results.
/**
 * Runs the command lines of README.md and docs/ as they stand there, with the
 * packaged file, on a hub and a node that see nothing of this machine.
 *
 * Usage: `deno task lab docs [REGEX]`; REGEX picks pages. Ends with `N passed,
 * N failed, N skipped`. Needs root, for namespaces.
 *
 * @module
 */

import {
  endChildrenOnSignals,
  killAllChildren,
} from "../../tests/support/program/child.ts";
import { programWords } from "../../tests/support/program/program.ts";
import { DocsStage, enterHub } from "./docs_stage.ts";
import { type CommandLine, commandLines } from "./page_lines.ts";
import { PageRun } from "./page_run.ts";
import { PAGE_SCRIPTS } from "./page_scripts.ts";
import { NOT_RUN } from "./not_run.ts";

/** For one page; the longest takes a minute beside other work. */
const PAGE_MS = 180_000;

async function main(): Promise<number> {
  // Before there is no network any more: it may have to be made.
  const program = programWords();
  const inside = await enterHub(import.meta.url);
  if (inside !== undefined) return inside;
  const pattern = new RegExp(Deno.args[0] ?? ".");
  endChildrenOnSignals(() => Promise.resolve());
  await using stage = await DocsStage.open(program);
  let [passed, failed] = [0, 0];
  const lines = commandLines().filter((line) => !NOT_RUN.has(keyOf(line)));
  for (const [page, ofPage] of Map.groupBy(lines, ({ page }) => page)) {
    if (!pattern.test(page)) continue;
    const failures = await runPage(new PageRun(stage, ofPage), page);
    passed += ofPage.length - failures;
    failed += failures;
  }
  console.log(
    `${passed} passed, ${failed} failed, ${skipped(pattern)} skipped`,
  );
  return failed === 0 ? 0 : 1;
}

/** How {@linkcode NOT_RUN} names a line. */
function keyOf({ page, text }: CommandLine): string {
  return `${page}: ${text}`;
}

function skipped(pattern: RegExp): number {
  const counted = commandLines().filter((line) =>
    pattern.test(line.page) && NOT_RUN.has(keyOf(line))
  );
  for (const line of counted) {
    console.log(`SKIP ${shown(line)}: ${NOT_RUN.get(keyOf(line))}`);
  }
  return counted.length;
}

/** @returns How many lines failed, or were not reached for that. */
async function runPage(run: PageRun, page: string): Promise<number> {
  const begin = performance.now();
  let problem = "";
  try {
    const script = PAGE_SCRIPTS[page];
    if (script === undefined) throw new Error("Nobody runs this page's lines");
    await within(script(run));
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error);
  }
  try {
    await run.stage.clear();
  } catch (error) {
    problem ||= error instanceof Error ? error.message : String(error);
  }
  for (const line of run.passed) console.log(`PASS ${shown(line)}`);
  const rest = run.lines.filter((line) => !run.passed.includes(line));
  for (const line of rest) console.log(`FAIL ${shown(line)}`);
  const isBad = problem !== "" || rest.length > 0;
  if (isBad) console.log(`FAIL ${page}: ${problem || "lines are left over"}`);
  const seconds = ((performance.now() - begin) / 1_000).toFixed(1);
  console.log(`=== ${page}: ${seconds} s`);
  return isBad ? Math.max(1, rest.length) : 0;
}

function shown({ page, number, text }: CommandLine): string {
  return `${page}:${number} ${text.replaceAll(/\s+/g, " ").slice(0, 90)}`;
}

async function within(work: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`It took more than ${PAGE_MS / 1_000} s`)),
      PAGE_MS,
    );
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

if (import.meta.main) {
  let code = 1;
  try {
    code = await main();
  } finally {
    await killAllChildren();
  }
  Deno.exit(code);
}
