// deno-lint-ignore-file no-console -- a command that says what it did.
/**
 * Writes into `lab/test-times.md` how long the steps of `.ci/run` and the slowest
 * tests took when they ran last in this checkout.
 *
 * Usage: `deno task lab times`, after `.ci/run`.
 *
 * @module
 */

const PAGE = "lab/test-times.md";
const STEPS = ".cache/ci/steps.json";
const REPORTS = ".cache/tests";
const BEGIN = "<!-- written by `deno task lab times` -->";
const END = "<!-- to here -->";
const SLOWEST = 20;

/** As `scripts/ci.ts` keeps it. */
export interface StepTimes {
  /** Of the whole run. */
  readonly seconds: number;
  readonly steps: readonly {
    readonly name: string;
    readonly passed: number;
    readonly failed: number;
    readonly skipped: number;
    readonly seconds: number;
    readonly cpuSeconds: number;
  }[];
}

export interface TestTime {
  readonly name: string;
  readonly file: string;
  readonly seconds: number;
}

const CASE =
  /<testcase name="([^"]*)" classname="([^"]*)" time="([\d.]+)"[^>]*>/g;
const ENTITIES = new Map([
  ...[["&lt;", "<"], ["&gt;", ">"], ["&quot;", '"'], ["&apos;", "'"]],
  ...[["&amp;", "&"], ["&#x20;", " "]],
] as [string, string][]);

/** The times in a report of `deno test` in JUnit's form. */
export function timesIn(xml: string): TestTime[] {
  const plain = (text: string) =>
    text.replaceAll(/&[#\w]+;/g, (entity) => ENTITIES.get(entity) ?? entity);
  return [...xml.matchAll(CASE)].map(([, name, file, seconds]) => ({
    name: plain(name!),
    file: plain(file!).replace(/^\.\//, ""),
    seconds: Number(seconds),
  }));
}

/** Of the steps, the longest first, and what they cost. */
export function stepTable({ seconds, steps }: StepTimes): string {
  const rows = steps.toSorted((one, other) => other.seconds - one.seconds).map((
    { name, passed, failed, skipped, seconds, cpuSeconds },
  ) =>
    `| ${name} | ${passed + failed + skipped} | ${seconds.toFixed(0)} s | ` +
    `${cpuSeconds.toFixed(0)} s |`
  );
  const cpu = steps.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0);
  return [
    "| step | counted | took | of it computing, on all cores |",
    "|---|---|---|---|",
    ...rows,
    `| all | | ${seconds.toFixed(0)} s | ${cpu.toFixed(0)} s |`,
  ].join("\n");
}

/** Of the tests that took longest. */
export function testTable(times: readonly TestTime[]): string {
  const rows = times.toSorted((one, other) => other.seconds - one.seconds)
    .slice(0, SLOWEST)
    .map(({ name, file, seconds }) =>
      `| ${name.replaceAll("|", "\\|")} | \`${file}\` | ${
        seconds.toFixed(1)
      } s |`
    );
  return ["| test | file | took |", "|---|---|---|", ...rows].join("\n");
}

async function main(): Promise<void> {
  const steps: StepTimes = JSON.parse(await Deno.readTextFile(STEPS));
  const reports = ["fast", "slow", "alone"].map((kind) =>
    Deno.readTextFile(`${REPORTS}/${kind}.xml`).catch(() => "")
  );
  const times = (await Promise.all(reports)).flatMap(timesIn);
  const page = await Deno.readTextFile(PAGE);
  const [before, behind] = [
    page.slice(0, page.indexOf(BEGIN)),
    page.slice(page.indexOf(END)),
  ];
  const tables = `${stepTable(steps)}\n\nThe slowest tests of \`test\` and ` +
    `\`test:slow\`, where processes are started or time passes:\n\n` +
    testTable(times);
  await Deno.writeTextFile(PAGE, `${before}${BEGIN}\n\n${tables}\n\n${behind}`);
  console.log(`${PAGE}: ${steps.steps.length} steps, ${times.length} tests`);
}

if (import.meta.main) await main();
