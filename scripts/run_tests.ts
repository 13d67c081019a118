// deno-lint-ignore-file no-console -- a command that prints its findings.
/**
 * All tests, and no more words than there is news: how far it is, what failed
 * when it fails, the failures in full, and a last line with the total.
 *
 * Usage: `deno task test [FILES OR FLAGS OF deno test…]`
 *
 * What `deno test` said word for word is in `.cache/test.log`.
 *
 * @module
 */

import { TextLineStream } from "@std/streams";
import { isWrittenOver } from "../cli/program/progress.ts";
import { typescriptFiles } from "./project_files.ts";
import { TestProgress } from "./test_progress.ts";

const PERMISSIONS = [
  ...["--allow-net", "--allow-read", "--allow-write", "--allow-env"],
  ...["--allow-sys", "--allow-run", "--allow-ffi"],
];

const LOG = ".cache/test.log";

/** How often is said how far it is: where one line is kept new, and elsewhere. */
const EVERY_MS = { terminal: 500, log: 20_000 } as const;

async function main(): Promise<number> {
  const begin = performance.now();
  const wanted = Deno.args.length > 0
    ? undefined
    : (await typescriptFiles()).filter((path) => path.endsWith("_test.ts"));
  const progress = new TestProgress(wanted?.length);
  const isTerminal = isWrittenOver(Deno.stdout);
  const seconds = () => (performance.now() - begin) / 1_000;
  const show = () => {
    const line = `${seconds().toFixed(0).padStart(4)} s  ${progress.status}`;
    if (isTerminal) write(`\r\x1b[K${line}`);
    else console.log(line);
  };
  const child = new Deno.Command(Deno.execPath(), {
    args: ["test", "--parallel", ...PERMISSIONS, ...Deno.args],
    env: { NO_COLOR: "1" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const timer = setInterval(
    show,
    isTerminal ? EVERY_MS.terminal : EVERY_MS.log,
  );
  const take = (line: string) => {
    const news = progress.take(line);
    if (news !== undefined) {
      console.log(`${isTerminal ? "\r\x1b[K" : ""}${news}`);
    }
  };
  const [{ success }] = await Promise.all([
    child.status,
    eachLine(child.stdout, take),
    eachLine(child.stderr, take),
  ]);
  clearInterval(timer);
  if (isTerminal) write("\r\x1b[K");
  await keep(progress.output);
  console.log(progress.end(seconds(), success));
  return success ? 0 : 1;
}

async function eachLine(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  take: (line: string) => void,
): Promise<void> {
  const lines = stream.pipeThrough(new TextDecoderStream())
    .pipeThrough(new TextLineStream());
  for await (const line of lines) take(line);
}

/** It helps, and is not needed: a checkout may be read-only. */
async function keep(output: string): Promise<void> {
  try {
    await Deno.mkdir(".cache", { recursive: true });
    await Deno.writeTextFile(LOG, output);
  } catch (error) {
    console.error(`Cannot write ${LOG}: ${(error as Error).message}`);
  }
}

function write(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(text));
}

if (import.meta.main) Deno.exit(await main());
