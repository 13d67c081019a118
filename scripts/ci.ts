// deno-lint-ignore-file no-console -- a command that prints its findings.
/**
 * Runs all steps of `ci_plan.ts`, light ones beside each other, and adds them
 * up. All run, whatever fails; one that fails, or cannot be counted, is a
 * failure. Behind `.ci/run`.
 *
 * Usage: `.ci/run [STEP…]`; with names only these steps.
 *
 * Each step's output is printed whole when it ends, and is kept in `.cache/ci`
 * with how long it took, which `scripts/test_times.ts` makes a table of. What
 * failed is printed again at the end: the lines that name failures and the last
 * forty.
 *
 * @module
 */

import { readTotal } from "../tests/support/watch/tally.ts";
import { startable, type Step, STEPS } from "./ci_plan.ts";
import { readTestTotal } from "./tests.ts";

/** Of `.ci/run`: a total that comes is worth more than a last step. */
const DEADLINE_S = 4_800;
/** Nothing takes so long: what hangs is a failure. */
const STEP_DEADLINE_S = 2_400;
/** How often is said what is under way. */
const EVERY_MS = 30_000;

const FOLDER = ".cache/ci";

/** What `timeout` ends with when it had to end something. */
const ENDED_LATE = [124, 137];

/** How a step went. */
interface Done {
  readonly step: Step;
  readonly log: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly seconds: number;
  /** On all cores together. */
  readonly cpuSeconds: number;
}

const begin = performance.now();
const sinceBegin = () => (performance.now() - begin) / 1_000;
const pids = new Map<Step, number>();
const done: Done[] = [];

/** With a group of processes of its own, so that it can be ended whole. */
function commandOf({ name, words, of = "task" }: Step): string[] {
  const left = Math.max(1, DEADLINE_S - sinceBegin());
  const limit = Math.round(Math.min(STEP_DEADLINE_S, left));
  // bash says what its children have used, `timeout` leads their group.
  const script = 'TIMEFORMAT="cpu %U %S"; time "$@" >"$0" 2>&1 </dev/null';
  return [
    ...["timeout", "--kill-after=10", `${limit}`, "bash", "-c", script],
    `${FOLDER}/${name}.log`,
    ...of === "task"
      ? [Deno.execPath(), "task", "--quiet"]
      : [Deno.env.get("TUNNEL_PROGRAM") ?? "tunnel"],
    ...words,
  ];
}

async function run(step: Step): Promise<void> {
  const startedS = sinceBegin();
  console.log(
    `=== ${step.name} begins: ${step.of ?? "task"} ${step.words.join(" ")}`,
  );
  const [program, ...args] = commandOf(step);
  const child = new Deno.Command(program!, {
    args,
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  pids.set(step, child.pid);
  const { code, stderr } = await child.output();
  pids.delete(step);
  const [, user = 0, system = 0] =
    /^cpu ([\d.]+) ([\d.]+)$/m.exec(new TextDecoder().decode(stderr)) ?? [];
  const log = await Deno.readTextFile(`${FOLDER}/${step.name}.log`)
    .catch(() => "");
  const total = readTotal(log) ?? readTestTotal(log);
  // Without a count the step itself is the test.
  const counted = total ??
    { passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1, skipped: 0 };
  const failed = code !== 0 && counted.failed === 0 ? 1 : counted.failed;
  const seconds = sinceBegin() - startedS;
  const cpuSeconds = Number(user) + Number(system);
  done.push({ ...counted, step, log, failed, seconds, cpuSeconds });
  console.log(log.trimEnd());
  if (ENDED_LATE.includes(code)) {
    console.log(`=== ${step.name} took too long and was ended`);
  }
  console.log(
    `=== ${step.name}: ${counted.passed} passed, ${failed} failed, ` +
      `${counted.skipped} skipped, ${seconds.toFixed(0)} s, ` +
      `${cpuSeconds.toFixed(0)} s of computing, exit ${code}`,
  );
}

async function runAll(steps: readonly Step[]): Promise<void> {
  const waiting = [...steps];
  const running = new Map<Step, Promise<void>>();
  while (waiting.length + running.size > 0) {
    for (const step of startable(waiting, [...running.keys()])) {
      waiting.splice(waiting.indexOf(step), 1);
      running.set(step, run(step).finally(() => running.delete(step)));
    }
    await Promise.race(running.values());
  }
}

/** What names failures, and the end. */
function complaintOf({ step, log }: Done): string {
  const errors = /^ ERRORS *$[^]*?^FAILED \|/m.exec(log)?.[0].split("\n") ?? [];
  const lines = log.trimEnd().split("\n");
  const named = lines.flatMap((line, at) =>
    /^ *FAIL /.test(line) ? lines.slice(at, at + 6) : []
  );
  return [
    `=== ${step.name} failed:`,
    ...errors.slice(0, 200),
    ...named.slice(0, 100),
    `=== ${step.name}, its last lines:`,
    ...lines.slice(-40),
  ].join("\n");
}

/** @param cutOff How many were under way when somebody wanted an end. */
async function end(cutOff: number): Promise<number> {
  const sum = (of: (one: Done) => number) =>
    done.reduce((total, one) => total + of(one), 0);
  await Deno.writeTextFile(
    `${FOLDER}/steps.json`,
    JSON.stringify({
      seconds: sinceBegin(),
      steps: done.map(({ step: { name }, log: _, ...one }) => ({
        name,
        ...one,
      })),
    }),
  );
  for (const one of done) if (one.failed > 0) console.log(complaintOf(one));
  const failed = sum((one) => one.failed) + cutOff;
  console.log(`=== ${Math.round(sinceBegin())} s`);
  console.log(
    `${sum((one) => one.passed)} passed, ${failed} failed, ` +
      `${sum((one) => one.skipped)} skipped`,
  );
  return failed === 0 ? 0 : 1;
}

/** Ends what is under way, and says what has been counted until now. */
function stop(): void {
  const names = [...pids.keys()].map(({ name }) => name);
  for (const pid of pids.values()) Deno.kill(-pid, "SIGTERM");
  console.log(`=== stopped by a signal, during ${names.join(", ")}`);
  end(Math.max(1, pids.size)).finally(() => Deno.exit(130));
}

async function main(): Promise<number> {
  const unknown = Deno.args.filter((name) =>
    STEPS.every((step) => step.name !== name)
  );
  if (unknown.length > 0) {
    const names = STEPS.map(({ name }) => name).join(", ");
    console.error(`Cannot run "${unknown}": the steps are ${names}`);
    return 2;
  }
  await Deno.mkdir(FOLDER, { recursive: true });
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, stop);
  }
  const beat = setInterval(() => {
    const names = [...pids.keys()].map(({ name }) => name).join(", ");
    console.log(`${sinceBegin().toFixed(0).padStart(5)} s  ${names}`);
  }, EVERY_MS);
  await runAll(
    STEPS.filter(({ name }) =>
      Deno.args.length === 0 || Deno.args.includes(name)
    ),
  );
  clearInterval(beat);
  return await end(0);
}

if (import.meta.main) Deno.exit(await main());
