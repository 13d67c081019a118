/**
 * Runs tests of one kind with `deno test`, and reads what it says while it says
 * it. Behind `task test`, `task test:slow` and `task ok tests`.
 *
 * @module
 */

import { TextLineStream } from "@std/streams";
import { typescriptFiles } from "./project_files.ts";
import {
  groupsOf,
  inOrder,
  type Kind,
  kindOf,
  readTestTotal,
} from "./tests.ts";

const CORES = navigator.hardwareConcurrency;

/**
 * Half of the time of fast tests would be the same modules loaded anew for each
 * file, so some dozens of files share one module that imports them, and with it
 * one isolate. So many that {@linkcode JOBS} of them end at about the same time:
 * slow ones differ most.
 */
const GROUPS: Readonly<Record<Kind, number>> = {
  fast: 6,
  slow: 28,
  alone: Infinity,
};

/** More than cores: sockets are waited for now and then, processes mostly. */
const JOBS: Readonly<Record<Kind, number>> = {
  fast: CORES + 1,
  slow: 2 * CORES,
  alone: 1,
};

const PERMISSIONS = [
  ...["--allow-net", "--allow-read", "--allow-write", "--allow-env"],
  ...["--allow-sys", "--allow-run", "--allow-ffi"],
];

/** Where a run leaves what was said, and how long each test took. */
const REPORTS = ".cache/tests";

/** How a run ended. */
export interface TestRun {
  readonly ok: boolean;
  readonly output: string;
  /** A run that broke down without having counted it has one failure. */
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly seconds: number;
}

/** Every file of the project with tests of this `kind`. */
export async function testFiles(kind: Kind): Promise<string[]> {
  return (await typescriptFiles()).filter((path) => kindOf(path) === kind);
}

/** What is run, and who is told of it. */
export interface RunOptions {
  /** Further arguments of `deno test`. */
  readonly flags?: readonly string[];
  /** Is told each line at once. */
  readonly onLine?: (line: string) => void;
}

/**
 * Runs `files`, which are of one `kind`. Types are not looked at: `task ok check`
 * does that.
 */
export async function runTests(
  kind: Kind,
  files: readonly string[],
  options: RunOptions = {},
): Promise<TestRun> {
  // Elsewhere, or the checks that run beside it would look at them, too.
  const folder = await Deno.makeTempDir();
  try {
    const count = Math.min(GROUPS[kind], files.length);
    const modules = await writeGroups(folder, groupsOf(inOrder(files), count));
    const run = await denoTest(kind, modules, `${folder}/times.xml`, options);
    await keep(kind, run, `${folder}/times.xml`);
    return run;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** It helps, and is not needed: a checkout may be read-only. */
async function keep(kind: Kind, run: TestRun, times: string): Promise<void> {
  try {
    await Deno.mkdir(REPORTS, { recursive: true });
    await Deno.writeTextFile(`${REPORTS}/${kind}.log`, run.output);
    await Deno.copyFile(times, `${REPORTS}/${kind}.xml`);
  } catch {
    // Nobody is waiting for them.
  }
}

/** @returns The modules that import the files of a group each. */
async function writeGroups(
  folder: string,
  groups: readonly (readonly string[])[],
): Promise<string[]> {
  const root = new URL(`file://${Deno.cwd()}/`);
  return await Promise.all(
    groups.map(async (group, index) => {
      const module = `${folder}/group_${index + 1}_test.ts`;
      const imports = group.map((path) => `import "${new URL(path, root)}";\n`);
      await Deno.writeTextFile(module, imports.join(""));
      return module;
    }),
  );
}

async function denoTest(
  kind: Kind,
  modules: readonly string[],
  times: string,
  { flags = [], onLine = () => {} }: RunOptions,
): Promise<TestRun> {
  const begin = performance.now();
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      ...["test", "--config=deno.json", "--no-check"],
      ...JOBS[kind] > 1 ? ["--parallel"] : [],
      ...PERMISSIONS,
      ...[`--junit-path=${times}`, ...flags, ...modules],
    ],
    env: { NO_COLOR: "1", DENO_JOBS: `${JOBS[kind]}` },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  let output = "";
  const take = (line: string) => {
    output += `${line}\n`;
    onLine(line);
  };
  const [{ success }] = await Promise.all([
    child.status,
    eachLine(child.stdout, take),
    eachLine(child.stderr, take),
  ]);
  const total = readTestTotal(output);
  return {
    ok: success && total !== undefined,
    output,
    ...total ?? { passed: 0, failed: 0, skipped: 0 },
    ...success || (total?.failed ?? 0) > 0 ? {} : { failed: 1 },
    seconds: (performance.now() - begin) / 1_000,
  };
}

async function eachLine(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  take: (line: string) => void,
): Promise<void> {
  const lines = stream.pipeThrough(new TextDecoderStream())
    .pipeThrough(new TextLineStream());
  for await (const line of lines) take(line);
}
