/**
 * Two faults at once: the second begins while the first lasts. What both may
 * cost together is not the sum of what each may: two agents in front of one
 * target may be gone, and conduits that were opened meanwhile may go over a
 * server that no caller has chosen.
 *
 * @module
 */

import type { Prng } from "../../tests/support/memory/prng.ts";
import { sleep } from "../../tests/support/watch/event_loop.ts";
import { type Allowance, type Fault, type FaultMaker, USUAL } from "./fault.ts";
import type { Path } from "./ledger.ts";
import type { Stage } from "./stage.ts";
import { agentsOf, targetsOf } from "./topology.ts";

/** Between the beginnings of both. */
const APART_MS = 700;

/** What is tried until two are found that do not hit the same. */
const DRAWS_MAX = 50;

const BACK_MS = 25_000;

/** A pair of faults that can be had at once; `undefined` when none was found. */
export function drawPair(
  firsts: readonly FaultMaker[],
  seconds: readonly FaultMaker[],
  stage: Stage,
  prng: Prng,
): Fault | undefined {
  for (let draw = 0; draw < DRAWS_MAX; draw++) {
    const one = prng.pick(firsts)(stage, prng);
    const other = prng.pick(seconds)(stage, prng);
    if (typeof one === "string" || typeof other === "string") continue;
    const { hits = [one.name] } = one;
    const { hits: others = [other.name] } = other;
    if (hits.some((name) => others.includes(name))) continue;
    return pairOf(one, other, stage);
  }
  return undefined;
}

function pairOf(one: Fault, other: Fault, stage: Stage): Fault {
  let beginMs = Infinity;
  return {
    name: `${one.name} + ${other.name}`,
    lastsMs: 0,
    allows: bothAllow(one, other, stage, () => beginMs),
    async apply() {
      beginMs = Date.now();
      await Promise.all([play(one, 0), play(other, APART_MS)]);
    },
    undo: () => Promise.resolve(),
  };
}

/** Each lasts as long as it does alone. */
async function play(fault: Fault, waitMs: number): Promise<void> {
  await sleep(waitMs);
  await fault.apply();
  await sleep(fault.lastsMs);
  await fault.undo();
}

function bothAllow(
  { allows: a, fells: felled }: Fault,
  { allows: b, fells: alsoFelled }: Fault,
  stage: Stage,
  beginMs: () => number,
): Allowance {
  const either = (name: "mayBreak" | "mayStand") => (path: Path) =>
    (a[name] ?? a.mayBreak)?.(path) === true ||
    (b[name] ?? b.mayBreak)?.(path) === true ||
    (path.openedMs ?? 0) >= beginMs();
  const isFelled = (agent: string) => agent === felled || agent === alsoFelled;
  const gone = targetsOf(stage.topology)
    .filter((target) => agentsOf(stage.topology, target).every(isFelled));
  const most = (name: "stallMs" | "dialMs") =>
    (a[name] ?? USUAL[name]) + (b[name] ?? USUAL[name]);
  return {
    mayBreak: either("mayBreak"),
    mayStand: either("mayStand"),
    mayEnd: a.mayEnd === true || b.mayEnd === true,
    mayFail: [...a.mayFail ?? [], ...b.mayFail ?? [], ...gone],
    mayFailBy: [...a.mayFailBy ?? [], ...b.mayFailBy ?? []],
    underWay: [...a.underWay ?? [], ...b.underWay ?? []],
    mayWait: [...a.mayWait ?? [], ...b.mayWait ?? []],
    mayWaitBy: [...a.mayWaitBy ?? [], ...b.mayWaitBy ?? []],
    stallMs: most("stallMs"),
    dialMs: most("dialMs"),
    backMs: BACK_MS,
  };
}
