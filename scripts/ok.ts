// deno-lint-ignore-file no-console -- a command that prints its findings.
/**
 * What must hold before every commit, in seconds: format, lint, types, layers,
 * tidiness and the fast tests.
 *
 * Usage: `deno task ok [STEP…]`
 *
 * The tests run beside the other steps. Half of their time would be the same
 * modules loaded anew for each test file, so some dozens of files share one
 * module that imports them, and with it one isolate.
 *
 * Prints a line for each step, the whole output of those that fail, and ends
 * with `N passed, N failed, N skipped`.
 *
 * @module
 */

import { Tally } from "../tests/interop/tally.ts";
import { typescriptFiles } from "./project_files.ts";
import { groupsOf, isFastTest, readTestTotal, withoutPasses } from "./tests.ts";

/** So many that three jobs end at about the same time. */
const GROUPS = 6;

/** One more than cores: tests of sockets wait now and then. */
const JOBS = navigator.hardwareConcurrency + 1;

const CHECKS: Readonly<Record<string, readonly string[]>> = {
  fmt: ["fmt", "--check"],
  lint: ["lint"],
  check: ["check"],
  layers: ["task", "--quiet", "layers"],
  tidy: ["task", "--quiet", "tidy"],
};

interface Outcome {
  readonly ok: boolean;
  readonly output: string;
  readonly seconds: string;
}

async function deno(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  const begin = performance.now();
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [...args],
    env: { NO_COLOR: "1", ...env },
    stdin: "null",
  }).output();
  const [said, complained] = [stdout, stderr].map((bytes) =>
    new TextDecoder().decode(bytes)
  );
  return {
    ok: success,
    output: `${said}${complained}`,
    seconds: `${((performance.now() - begin) / 1000).toFixed(1)} s`,
  };
}

async function check(name: string, tally: Tally): Promise<void> {
  // deno-lint-ignore tunnel/own-keys -- it is one of its own.
  const { ok, output, seconds } = await deno(CHECKS[name]!);
  if (ok) tally.pass(`${name} (${seconds})`);
  else tally.fail(`${name} (${seconds})`, output.trimEnd());
}

async function tests(tally: Tally): Promise<void> {
  // Elsewhere, or the other steps would look at them too.
  const folder = await Deno.makeTempDir();
  try {
    await runTests(await writeGroups(folder), tally);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function runTests(modules: readonly string[], tally: Tally) {
  const { ok, output, seconds } = await deno([
    ...["test", "--config=deno.json", "--no-check", "--parallel"],
    ...["--allow-net", "--allow-read", "--allow-write", "--allow-env"],
    ...["--allow-sys", "--allow-run", "--allow-ffi", ...modules],
  ], { DENO_JOBS: `${JOBS}` });
  const total = readTestTotal(output);
  if (total !== undefined) tally.add(total);
  if (ok && total !== undefined) return tally.note(`PASS tests (${seconds})`);
  // Counted already, unless it broke down without counting.
  if (total === undefined || total.failed === 0) tally.failed++;
  tally.note(`FAIL tests (${seconds})\n${withoutPasses(output)}`);
}

/** @returns The modules that import the tests. */
async function writeGroups(folder: string): Promise<string[]> {
  const files = (await typescriptFiles()).filter(isFastTest);
  const root = new URL(`file://${Deno.cwd()}/`);
  return await Promise.all(
    groupsOf(files, GROUPS).map(async (group, index) => {
      const module = `${folder}/group_${index + 1}_test.ts`;
      const imports = group.map((path) => `import "${new URL(path, root)}";\n`);
      await Deno.writeTextFile(module, imports.join(""));
      return module;
    }),
  );
}

async function main(): Promise<number> {
  const wanted = Deno.args.length > 0
    ? Deno.args
    : [...Object.keys(CHECKS), "tests"];
  const unknown = wanted.filter((name) =>
    !(name in CHECKS) && name !== "tests"
  );
  if (unknown.length > 0) {
    const names = [...Object.keys(CHECKS), "tests"].join(", ");
    console.error(`Cannot run "${unknown}": the steps are ${names}`);
    return 2;
  }
  const tally = new Tally();
  const testing = wanted.includes("tests") ? tests(tally) : undefined;
  for (const name of wanted) if (name in CHECKS) await check(name, tally);
  await testing;
  return tally.end();
}

if (import.meta.main) Deno.exit(await main());
