/**
 * Compares what callers went through during a fault with what it may cost.
 *
 * @module
 */

import { SAID_FIRST } from "./entrance.ts";
import { type Allowance, USUAL } from "./fault.ts";
import {
  type BreakRecord,
  countCauses,
  type DialRecord,
  type Ledger,
  type Path,
  type StallRecord,
  type WrongBytesRecord,
} from "./ledger.ts";

/** One line of the report. */
export interface Verdict {
  readonly name: string;
  readonly dials: number;
  /** That no server served, though there was a way. */
  readonly failed: number;
  /** That no server served, and none could. */
  readonly failedAllowed: number;
  /** That were served after one server did not. */
  readonly retried: number;
  /** To targets that have another way; and of callers that speak first. */
  readonly slowestDialMs: number;
  readonly saidFirst: { readonly dials: number; readonly slowestMs: number };
  /** On paths that lived. */
  readonly longestStallMs: number;
  /** Conduits whose path died, and whose path lived. */
  readonly brokenDead: number;
  readonly brokenAlive: number;
  /** Sent and not echoed, on paths that died. */
  readonly lostBytes: number;
  /** From the end of the fault until all was well; `Infinity`: never. */
  readonly backMs: number;
  /** The same until every agent had all its links again. */
  readonly linkedMs: number;
  readonly missed: string | undefined;
  /** Nothing when the fault cost what it may. */
  readonly problems: readonly string[];
  /** What refused dials on the way, most frequent first. */
  readonly causes: readonly (readonly [cause: string, count: number])[];
}

/** What is known besides the ledger. */
export interface Outcome {
  readonly name: string;
  readonly allows: Allowance;
  /** When all of the fault was there. */
  readonly appliedMs: number;
  readonly backMs: number;
  readonly linkedMs: number;
  /** Complaints of the load when it was not well in time, and failed checks. */
  readonly problems: readonly string[];
}

const SHOWN_MAX = 3;

/** Another server is asked after one second, also with words that were said. */
const SAID_FIRST_MS = 3_000;

/** See the module description. */
export function judge(ledger: Ledger, outcome: Outcome): Verdict {
  const { allows } = outcome;
  const { mayBreak = never, mayStand = mayBreak } = allows;
  const { mayFail = [], mayFailBy = [], mayWait = [], mayWaitBy = [] } = allows;
  const { underWay = [] } = allows;
  const hasWay = ({ path: { target, protocol }, atMs }: DialRecord) =>
    !mayFail.includes(target) && !mayFailBy.includes(protocol) &&
    !(underWay.includes(protocol) && atMs <= outcome.appliedMs);
  const mustHurry = ({ path: { target, protocol } }: DialRecord) =>
    !mayWait.includes(target) && !mayWaitBy.includes(protocol);
  const bad = ledger.dials.filter(({ isGood }) => !isGood);
  const felt: Felt = {
    failed: bad.filter(hasWay),
    timed: ledger.dials.filter((dial) => hasWay(dial) && mustHurry(dial)),
    stalls: ledger.stalls.filter(({ path }) => !mayStand(path)),
    dead: ledger.breaks.filter(({ path }) => mayBreak(path)),
    alive: ledger.breaks.filter(({ path }) => !mayBreak(path)),
    wrong: ledger.wrong,
  };
  return {
    name: outcome.name,
    dials: ledger.dials.length,
    failed: felt.failed.length,
    failedAllowed: bad.length - felt.failed.length,
    retried:
      ledger.dials.filter(({ isGood, attempts }) =>
        isGood && attempts.length > 0
      ).length,
    slowestDialMs: longest(felt.timed),
    saidFirst: {
      dials: saidFirst(ledger.dials).length,
      slowestMs: longest(saidFirst(felt.timed)),
    },
    longestStallMs: longest(felt.stalls),
    brokenDead: felt.dead.length,
    brokenAlive: felt.alive.length,
    lostBytes: felt.dead.reduce((sum, { lostBytes }) => sum + lostBytes, 0),
    backMs: outcome.backMs,
    linkedMs: outcome.linkedMs,
    missed: allows.missed,
    problems: [...problemsOf(felt, outcome), ...outcome.problems],
    causes: countCauses(
      ledger.dials.flatMap(({ attempts }) =>
        attempts.map(({ server, cause }) => `${server}: ${cause}`)
      ),
    ),
  };
}

/** What callers felt, sorted by whether the fault may cost it. */
interface Felt {
  readonly failed: readonly DialRecord[];
  readonly timed: readonly DialRecord[];
  readonly stalls: readonly StallRecord[];
  readonly dead: readonly BreakRecord[];
  readonly alive: readonly BreakRecord[];
  readonly wrong: readonly WrongBytesRecord[];
}

/** A few of each kind, in sentences. */
function problemsOf(
  felt: Felt,
  { allows, backMs, appliedMs }: Outcome,
): string[] {
  const limits = { ...USUAL, ...allows };
  const longestStallMs = longest(felt.stalls);
  const unsaid = felt.dead.filter(({ isEof, path }) =>
    isEof && path.protocol === "grpc" && allows.mayEnd !== true
  );
  return [
    ...felt.failed.slice(0, SHOWN_MAX).map(({ path, attempts, ...dial }) =>
      `a dial ${describe(path)} failed, ${timesOf(dial, appliedMs)}: ` +
      attempts.map(({ server, cause }) => `${server}: ${cause}`).join("; ")
    ),
    ...felt.alive.slice(0, SHOWN_MAX).map(({ path, cause }) =>
      `a conduit ${describe(path)} broke, whose path lived: ${cause}`
    ),
    ...unsaid.slice(0, SHOWN_MAX).map(({ path, lostBytes }) =>
      `${lostBytes} bytes were lost ${describe(path)}, and the end looked clean`
    ),
    ...felt.wrong.slice(0, SHOWN_MAX).map(({ path, offset }) =>
      `a conduit ${describe(path)} got wrong bytes at ${offset}`
    ),
    ...lateText(felt.timed, limits.dialMs, appliedMs),
    ...lateText(saidFirst(felt.timed), SAID_FIRST_MS, appliedMs),
    ...longestStallMs > limits.stallMs
      ? [stallText(felt.stalls, longestStallMs, limits.stallMs)]
      : [],
    ...backMs > limits.backMs
      ? [`not well ${limits.backMs} ms after its end`]
      : [],
  ];
}

function saidFirst(dials: readonly DialRecord[]): DialRecord[] {
  return dials.filter(({ path }) => SAID_FIRST.includes(path.protocol));
}

function lateText(
  dials: readonly DialRecord[],
  limitMs: number,
  appliedMs: number,
): string[] {
  const slowest = dials.find(({ tookMs }) => tookMs === longest(dials));
  if (slowest === undefined || slowest.tookMs <= limitMs) return [];
  const { path, attempts } = slowest;
  const refusals = attempts.map(({ server, cause }) => `; ${server}: ${cause}`);
  return [
    `a dial ${describe(path)} was late, ${timesOf(slowest, appliedMs)} ` +
    `(${limitMs} ms are allowed)${refusals.join("")}`,
  ];
}

/** Whether it began before the fault was there decides whose it is. */
function timesOf(
  { atMs, tookMs }: Pick<DialRecord, "atMs" | "tookMs">,
  appliedMs: number,
): string {
  const side = atMs > appliedMs ? "after" : "before";
  return `begun ${
    Math.abs(atMs - appliedMs)
  } ms ${side} the fault was there, ` +
    `over in ${tookMs} ms`;
}

function stallText(
  stalls: readonly StallRecord[],
  worstMs: number,
  limitMs: number,
): string {
  const worst = stalls.find(({ tookMs }) => tookMs === worstMs)!;
  return `a conduit ${describe(worst.path)} stood still for ${worstMs} ms ` +
    `(${limitMs} are allowed)`;
}

function longest(records: readonly { readonly tookMs: number }[]): number {
  return records.reduce((max, { tookMs }) => Math.max(max, tookMs), 0);
}

function never(): boolean {
  return false;
}

function describe({ protocol, target, server, agent }: Path): string {
  const by = server === undefined ? protocol : `${protocol} of ${server}`;
  return `by ${by} to ${target}` +
    (agent === undefined || agent === target ? "" : ` over ${agent}`);
}

/** The table at the end of a run: a line for each fault. */
// deno-fmt-ignore: the columns are the point.
const COLUMNS: readonly (readonly [string, (line: Verdict) => string])[] = [
  ["fault", ({ name }) => name],
  ["dials", ({ dials }) => String(dials)],
  ["failed", ({ failed }) => String(failed)],
  ["no way", ({ failedAllowed }) => String(failedAllowed)],
  ["retried", ({ retried }) => String(retried)],
  ["slowest dial", ({ slowestDialMs }) => `${slowestDialMs} ms`],
  ["said first", ({ saidFirst: { dials, slowestMs } }) => `${dials}, ${slowestMs} ms`],
  ["longest stall", ({ longestStallMs }) => `${longestStallMs} ms`],
  ["cut (dead path)", ({ brokenDead }) => String(brokenDead)],
  ["cut (alive)", ({ brokenAlive }) => String(brokenAlive)],
  ["bytes lost", ({ lostBytes }) => String(lostBytes)],
  ["well after", ({ backMs }) => Number.isFinite(backMs) ? `${Math.round(backMs)} ms` : "never"],
  ["verdict", ({ problems, missed }) => problems.length > 0 ? "FAIL" : missed === undefined ? "ok" : "ok (miss)"],
];

/** Lines of markdown. */
export function reportTable(verdicts: readonly Verdict[]): string[] {
  const titles = COLUMNS.map(([title]) => title);
  return [
    row(titles),
    row(titles.map(() => "---")),
    ...verdicts.map((line) => row(COLUMNS.map(([, cell]) => cell(line)))),
    ...verdicts.filter(({ missed }) => missed !== undefined)
      .map(({ name, missed }) => `miss: ${name}: ${missed}`),
  ];
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}
