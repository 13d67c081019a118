// deno-lint-ignore-file no-console -- a command that prints its findings.
/**
 * Tests, and no more words than there is news: how far it is, what failed when
 * it fails, the failures in full, and a last line with the total.
 *
 * Usage: `deno task test` for all that are deterministic, `deno task test:slow`
 * for those that start processes or wait for real time (with `slow` or `alone`
 * for one of its two kinds); `deno task test [FILES OR FOLDERS OR FLAGS OF deno
 * test…]` for these of both.
 *
 * What `deno test` said word for word is in `.cache/tests`.
 *
 * @module
 */

import { isWrittenOver } from "../cli/program/progress.ts";
import { runTests, testFiles, type TestRun } from "./test_engine.ts";
import { TestProgress } from "./test_progress.ts";
import type { Kind } from "./tests.ts";

/** How often is said how far it is: where one line is kept new, and elsewhere. */
const EVERY_MS = { terminal: 500, log: 20_000 } as const;

const SLOW_KINDS: readonly Kind[] = ["slow", "alone"];

/** What each task is made of, in this order. */
const TASKS = new Map<string, readonly Kind[]>([
  ["test", ["fast"]],
  ["test:slow", SLOW_KINDS],
]);

/** The files of each kind that are to be run. */
async function wanted(
  ofTask: readonly Kind[],
  paths: readonly string[],
): Promise<[Kind, string[]][]> {
  const kinds = paths.length === 0 ? ofTask : [...TASKS.values()].flat();
  const places = paths.map((path) => path.replace(/^\.\//, ""));
  return await Promise.all(
    kinds.map(async (kind): Promise<[Kind, string[]]> => {
      const files = (await testFiles(kind)).filter((file) =>
        places.length === 0 ||
        places.some((place) => file === place || file.startsWith(`${place}/`))
      );
      return [kind, files];
    }),
  );
}

async function main([task = "test", ...words]: string[]): Promise<number> {
  const ofTask = TASKS.get(task);
  if (ofTask === undefined) {
    console.error(`Cannot run "${task}": there is ${[...TASKS.keys()]}`);
    return 2;
  }
  const isKind = (word: string) =>
    ofTask === SLOW_KINDS && SLOW_KINDS.some((kind) => kind === word);
  const named = ofTask.filter((kind) => isKind(kind) && words.includes(kind));
  const kinds = named.length > 0 ? named : ofTask;
  const begin = performance.now();
  const progress = new TestProgress();
  const isTerminal = isWrittenOver(Deno.stdout);
  const show = () => {
    const seconds = (performance.now() - begin) / 1_000;
    const line = `${seconds.toFixed(0).padStart(4)} s  ${progress.status}`;
    if (isTerminal) write(`\r\x1b[K${line}`);
    else console.log(line);
  };
  const take = (line: string) => {
    const news = progress.take(line);
    if (news !== undefined) {
      console.log(`${isTerminal ? "\r\x1b[K" : ""}${news}`);
    }
  };
  const timer = setInterval(
    show,
    isTerminal ? EVERY_MS.terminal : EVERY_MS.log,
  );
  const runs: TestRun[] = [];
  const flags = words.filter((word) => word.startsWith("-"));
  const paths = words.filter((word) => !word.startsWith("-") && !isKind(word));
  for (const [kind, files] of await wanted(kinds, paths)) {
    if (files.length === 0) continue;
    runs.push(await runTests(kind, files, { flags, onLine: take }));
  }
  clearInterval(timer);
  if (isTerminal) write("\r\x1b[K");
  console.log(progress.end((performance.now() - begin) / 1_000, runs));
  return runs.length > 0 && runs.every(({ ok }) => ok) ? 0 : 1;
}

function write(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(text));
}

if (import.meta.main) Deno.exit(await main(Deno.args));
