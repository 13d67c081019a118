// deno-lint-ignore-file no-console -- a command that prints its results.
/**
 * h2spec (generic, http2 and hpack, strict) against everything of ours that
 * takes the server role in HTTP/2.
 *
 * Usage: `deno task lab conformance [ARRANGEMENT…]`
 *
 * Prints a line for each section and each case that did not pass, and ends
 * with `N passed, N failed, N skipped`; nothing is ever skipped.
 *
 * @module
 */

import { findPeer } from "../../tests/support/program/peers.ts";
import { runToEnd } from "../../tests/support/program/run.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";
import { Tally } from "../../tests/support/watch/tally.ts";
import { ARRANGEMENTS } from "./arrangements.ts";
import { counted } from "../interop/case_runner.ts";

/** How many cases h2spec 2.2.1 has with `--strict`; fewer means a broken run. */
const CASES = 146;

/**
 * One case opens as many streams as are allowed, and one more; with what an
 * agent allows that takes a second on an idle machine.
 */
const CASE_TIMEOUT_S = 10;

export interface CaseResult {
  /** e.g. `http2/6.9.1`. */
  readonly section: string;
  readonly title: string;
  readonly outcome: "passed" | "failed" | "skipped";
  /** What was expected and seen. */
  readonly details: string;
}

/** Reads h2spec's report in JUnit form. */
export function readReport(xml: string): CaseResult[] {
  const cases = xml.matchAll(
    /<testcase package="([^"]*)" classname="([^"]*)"[^>]*?(?:\/>|>([\s\S]*?)<\/testcase>)/g,
  );
  return [...cases].map(([, section, title, body]) => {
    const inner = body ?? "";
    const outcome = /<(?:error|failure)/.test(inner)
      ? "failed"
      : /<skipped/.test(inner)
      ? "skipped"
      : "passed";
    const details = unescapeXml(inner.replaceAll(/<[^>]*>/g, "").trim());
    const name = unescapeXml(title!);
    return { section: section!, title: name, outcome, details };
  });
}

function unescapeXml(text: string): string {
  return text.replaceAll("&#34;", '"').replaceAll("&#39;", "'")
    .replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&")
    .replaceAll("&#xA;", "\n");
}

/** Counts the cases of one run, all of which are to pass. */
export function assess(
  arrangement: string,
  cases: readonly CaseResult[],
  tally: Tally,
): void {
  const sections = new Map<string, { passed: number; all: number }>();
  for (const result of cases) {
    const count = sections.get(result.section) ?? { passed: 0, all: 0 };
    sections.set(result.section, count);
    count.all++;
    if (result.outcome === "passed") {
      count.passed++;
      tally.passed++;
      continue;
    }
    const title = `h2spec ${arrangement}, ${result.section}: ${result.title}`;
    tally.fail(title, result.details || "skipped by h2spec");
  }
  for (const [section, { passed, all }] of sections) {
    tally.note(`${arrangement} ${section}: ${passed} of ${all}`);
  }
  if (cases.length !== CASES) {
    const seen = `${cases.length} cases were run, ${CASES} were wanted`;
    tally.fail(`h2spec ${arrangement} runs to its end`, seen);
  }
}

async function runArrangement(
  name: string,
  workspace: Workspace,
  tally: Tally,
): Promise<void> {
  const running = await ARRANGEMENTS[name]!(workspace);
  const report = workspace.path("h2spec.xml");
  const { stdout } = await runToEnd([
    ...[await findPeer("h2spec"), "--host", "127.0.0.1"],
    ...["--port", `${running.port}`, "--timeout", `${CASE_TIMEOUT_S}`],
    ...["--strict", "--junit-report", report],
    ...running.flags ?? [],
  ]);
  await running.stop();
  try {
    const cases = readReport(await Deno.readTextFile(report));
    assess(name, cases, tally);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    tally.fail(`h2spec ${name} writes a report`, stdout.slice(-400));
  }
}

async function main(): Promise<number> {
  const known = Object.keys(ARRANGEMENTS);
  const names = Deno.args.length > 0 ? Deno.args : known;
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    console.error(`unknown arrangement '${unknown}': ${known.join(", ")}`);
    return 2;
  }
  return await counted("h2spec starts", async (tally, workspace) => {
    for (const name of names) {
      try {
        await runArrangement(name, workspace, tally);
      } catch (error) {
        tally.fail(`h2spec ${name} can be run`, error);
      }
    }
  });
}

if (import.meta.main) Deno.exit(await main());
