/**
 * Compares what callers went through during a fault with what it may cost.
 *
 * @module
 */

import { type Allowance, USUAL } from "./fault.ts";
import { countCauses, type Ledger, type Path } from "./ledger.ts";

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
  /** To targets that have another way. */
  readonly slowestDialMs: number;
  /** On paths that lived. */
  readonly longestStallMs: number;
  /** Conduits whose path died, and whose path lived. */
  readonly brokenDead: number;
  readonly brokenAlive: number;
  /** Sent and not echoed, on paths that died. */
  readonly lostBytes: number;
  /** From the end of the fault until all was well; `Infinity`: never. */
  readonly backMs: number;
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
  readonly backMs: number;
  /** Complaints of the load when it was not well in time, and failed checks. */
  readonly problems: readonly string[];
}

const SHOWN_MAX = 3;

/** See the module description. */
export function judge(ledger: Ledger, outcome: Outcome): Verdict {
  const { allows } = outcome;
  const { mayBreak = never, mayStand = mayBreak } = allows;
  const { mayFail = [], mayFailBy = [] } = allows;
  const hasWay = ({ target, protocol }: Path) =>
    !mayFail.includes(target) && !mayFailBy.includes(protocol);
  const bad = ledger.dials.filter(({ isGood }) => !isGood);
  const failed = bad.filter(({ path }) => hasWay(path));
  const timed = ledger.dials.filter(({ path }) => hasWay(path));
  const stalls = ledger.stalls.filter(({ path }) => !mayStand(path));
  const dead = ledger.breaks.filter(({ path }) => mayBreak(path));
  const alive = ledger.breaks.filter(({ path }) => !mayBreak(path));
  const slowestDialMs = longest(timed);
  const longestStallMs = longest(stalls);
  const limits = { ...USUAL, ...allows };
  const early = dead.filter(({ isEof, path }) =>
    isEof && path.protocol === "grpc"
  );
  const problems = [
    ...failed.slice(0, SHOWN_MAX).map(({ path, attempts }) =>
      `a dial ${describe(path)} failed: ` +
      attempts.map(({ server, cause }) => `${server}: ${cause}`).join("; ")
    ),
    ...alive.slice(0, SHOWN_MAX).map(({ path, cause }) =>
      `a conduit ${describe(path)} broke, whose path lived: ${cause}`
    ),
    ...early.slice(0, SHOWN_MAX).map(({ path, lostBytes }) =>
      `${lostBytes} bytes were lost ${describe(path)}, and the end looked clean`
    ),
    ...ledger.wrong.slice(0, SHOWN_MAX).map(({ path, offset }) =>
      `a conduit ${describe(path)} got wrong bytes at ${offset}`
    ),
    ...slowestDialMs > limits.dialMs
      ? [`a dial took ${slowestDialMs} ms (${limits.dialMs} are allowed)`]
      : [],
    ...longestStallMs > limits.stallMs
      ? [stallText(stalls, longestStallMs, limits.stallMs)]
      : [],
    ...outcome.backMs > limits.backMs
      ? [`not well ${limits.backMs} ms after its end`]
      : [],
    ...outcome.problems,
  ];
  return {
    name: outcome.name,
    dials: ledger.dials.length,
    failed: failed.length,
    failedAllowed: bad.length - failed.length,
    retried:
      ledger.dials.filter(({ isGood, attempts }) =>
        isGood && attempts.length > 0
      ).length,
    slowestDialMs,
    longestStallMs,
    brokenDead: dead.length,
    brokenAlive: alive.length,
    lostBytes: dead.reduce((sum, { lostBytes }) => sum + lostBytes, 0),
    backMs: outcome.backMs,
    missed: allows.missed,
    problems,
    causes: countCauses(
      ledger.dials.flatMap(({ attempts }) =>
        attempts.map(({ server, cause }) => `${server}: ${cause}`)
      ),
    ),
  };
}

function stallText(
  stalls: Ledger["stalls"],
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
