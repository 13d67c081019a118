/**
 * Runs one scenario from its plan to its outcome.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import { CLOSE_GRACE_MS } from "../../proto/link/streams_server.ts";
import type { Plan } from "./plan.ts";
import { MEMORY_IS_SHORT_BYTES } from "./plan.ts";
import { PoolAudit } from "./pool_audit.ts";
import { type RunEnd, Simulator, type SimulatorOptions } from "./simulator.ts";
import type { Tamper } from "./targets.ts";
import { TunnelWorld } from "./tunnel_world.ts";
import { Watch } from "./watch.ts";

/** Longest time in which everything must have ended by itself. */
const WEDGE_MS = 180_000;

/** Longest time from the stop of everybody until nothing is left to do. */
const CLOSE_MS = 180_000;

/** How long an end that is over may look whether its peer is, too. */
const LAST_LOOK_MS = CLOSE_GRACE_MS + 1_000;

/** Options of {@linkcode runScenario}. */
export interface ScenarioOptions extends SimulatorOptions {
  /** Breaks something on purpose. */
  readonly tamper?: Tamper;
}

/** What came of a scenario. */
export interface Report {
  /** What was wrong first; unset when nothing was. */
  readonly failure: string | undefined;
  /** Equal for equal runs. */
  readonly hash: number;
  readonly events: number;
  /** How conduits ended and dials were answered, for the caller: counts. */
  readonly outcomes: ReadonlyMap<string, number>;
  readonly trace: readonly string[];
}

/** Runs `plan`. One at a time: the buffer pool's books are the process's. */
export async function runScenario(
  plan: Plan,
  options: ScenarioOptions = {},
): Promise<Report> {
  const sim = new Simulator(plan.seed, options);
  const audit = new PoolAudit((what) => sim.fail(what));
  const onStray = (event: Event) => {
    event.preventDefault();
    sim.fail(`uncaught: ${describeStray(event)}`);
  };
  globalThis.addEventListener("unhandledrejection", onStray);
  globalThis.addEventListener("error", onStray);
  try {
    const world = new TunnelWorld(sim, plan, options.tamper ?? asItIs);
    await play(sim, plan, world, audit);
    // Rejections that nobody handles are reported between two turns.
    await wholeTurn();
    return {
      failure: sim.failure,
      hash: sim.hash,
      events: sim.events,
      outcomes: outcomesOf(world),
      trace: sim.trace,
    };
  } finally {
    audit.close();
    globalThis.removeEventListener("unhandledrejection", onStray);
    globalThis.removeEventListener("error", onStray);
  }
}

async function play(
  sim: Simulator,
  plan: Plan,
  world: TunnelWorld,
  audit: PoolAudit,
): Promise<void> {
  const watch = new Watch(sim, plan, world, audit);
  world.start();
  const end = await sim.run(() => world.isOver, sim.now() + WEDGE_MS);
  watch.finish();
  if (end !== "done") return sim.fail(describeWedge(end, world));
  const mayReset = plan.budgetBytes <= MEMORY_IS_SHORT_BYTES;
  // Stalls may follow each other, and a route takes its time as well.
  const mayHoldDials = world.exchanges.some(({ longestStallMs }) =>
    longestStallMs >= plan.dialTimeoutMs / 2
  );
  for (const exchange of world.exchanges) {
    exchange.check({ mayReset, mayHoldDials });
  }
  sim.note("everybody leaves");
  world.stop();
  const closed = await sim.run(() => world.isClosed, sim.now() + CLOSE_MS);
  if (closed !== "done") sim.note(`stays open: ${closed}`);
  // What is set now belongs to nobody, but for a last look at what is closed.
  await sim.run(() => false, sim.now() + LAST_LOOK_MS);
  if (sim.pendingTimers > 0) {
    return sim.fail(`left behind: ${sim.pendingTimers} timers are set`);
  }
  const rest = await sim.run(() => false, sim.now() + CLOSE_MS);
  if (rest !== "idle") return sim.fail(`does not come to rest: ${rest}`);
  checkLeftovers(sim, world, audit);
}

function describeWedge(end: RunEnd, world: TunnelWorld): string {
  const open = world.exchanges.filter(({ isOver }) => !isOver)
    .map((exchange) => exchange.state);
  return `${end}: ${open.join("; ")} of ${world.exchanges.length} still open`;
}

function checkLeftovers(
  sim: Simulator,
  world: TunnelWorld,
  audit: PoolAudit,
): void {
  const left = world.leftovers();
  const buffers = audit.buffersBut(world.abandonedBuffers);
  if (buffers > 0) left.push(`${buffers} buffers are lent`);
  if (sim.pendingTimers > 0) left.push(`${sim.pendingTimers} timers are set`);
  if (left.length > 0) sim.fail(`left behind: ${left.join("; ")}`);
}

function outcomesOf(world: TunnelWorld): Map<string, number> {
  const outcomes = new Map<string, number>();
  for (const { failure, caller, wasAborted } of world.exchanges) {
    const outcome = failure !== undefined
      ? `failed ${failure.reason}`
      : wasAborted
      ? "given up"
      : caller?.end?.kind ?? "open";
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  }
  return outcomes;
}

function describeStray(event: Event): string {
  const error = "reason" in event
    ? event.reason
    : "error" in event
    ? event.error
    : event.type;
  return error instanceof Error ? error.stack ?? error.message : String(error);
}

/** One turn of the real event loop. */
export function wholeTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Nothing is broken on purpose. */
const asItIs: Tamper = (conduit) => conduit;
