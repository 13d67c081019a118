/**
 * One run inside the sandbox: stages, load, faults one by one and in pairs, the
 * report.
 *
 * @module
 */

import { Tally } from "../../tests/support/watch/tally.ts";
import { Prng } from "../../tests/support/memory/prng.ts";
import { sleep } from "../../tests/support/watch/event_loop.ts";
import { FakeClocks } from "./fake_clocks.ts";
import type { Fault, FaultFamily, FaultMaker } from "./fault.ts";
import { LeakWatch } from "./leaks.ts";
import { Ledger } from "./ledger.ts";
import { Load } from "./load.ts";
import { Network } from "./network.ts";
import { drawPair } from "./pair.ts";
import { addMachines, Stage } from "./stage.ts";
import {
  type StateKind,
  targetsOf,
  TOPOLOGIES,
  type Topology,
} from "./topology.ts";
import { judge, reportTable, type Verdict } from "./verdict.ts";
import {
  FREEZE_FAULTS,
  KILL_FAULTS,
  LONG_FREEZE_FAULTS,
  WORKER_FAULTS,
} from "./faults/processes.ts";
import { MACHINE_FAULTS } from "./faults/machine.ts";
import { NAME_FAULTS } from "./faults/names.ts";
import { LONG_NETWORK_FAULTS, NETWORK_FAULTS } from "./faults/network.ts";
import {
  ETCD_FAULTS,
  KUBERNETES_FAULTS,
  LONG_ETCD_FAULTS,
  LONG_KUBERNETES_FAULTS,
} from "./faults/stores.ts";

/** Those of the cut. */
const SHORT: FaultFamily = {
  ...KILL_FAULTS,
  ...FREEZE_FAULTS,
  ...NETWORK_FAULTS,
  ...MACHINE_FAULTS,
  ...NAME_FAULTS,
};

const LONG: FaultFamily = {
  ...SHORT,
  ...LONG_FREEZE_FAULTS,
  ...LONG_NETWORK_FAULTS,
};

/** With which those of a stage are paired: any stage can have them. */
const PAIRED_FAULTS: FaultFamily = {
  ...KILL_FAULTS,
  ...FREEZE_FAULTS,
  ...NETWORK_FAULTS,
};

/** What is played on a stage: on others than the first, what is theirs. */
function faultsOf(state: StateKind, isCut: boolean): FaultFamily {
  if (state === "directory") return isCut ? SHORT : LONG;
  if (state === "workers") return WORKER_FAULTS;
  if (state === "etcd") {
    return isCut ? ETCD_FAULTS : { ...ETCD_FAULTS, ...LONG_ETCD_FAULTS };
  }
  return isCut
    ? KUBERNETES_FAULTS
    : { ...KUBERNETES_FAULTS, ...LONG_KUBERNETES_FAULTS };
}

/** What was asked for. */
export interface RunPlan {
  readonly seed: number;
  readonly minutes: number;
  readonly isCut: boolean;
  readonly isStrict: boolean;
  /** Beginnings of faults' names; none: all. */
  readonly only: readonly string[];
}

/** Until a stage that was just started is well. */
const FIRST_WELL_MS = 30_000;
const BACK_MS_DEFAULT = 10_000;
/** Beyond its allowance a fault is given so long, for the report. */
const BACK_GRACE_MS = 20_000;
const LOOK_MS = 50;

/** Of an agent to each server, unless flags say otherwise. */
const LINKS = 2;

/** See the module description. */
export async function playAll(plan: RunPlan, folder: string): Promise<number> {
  const tally = new Tally();
  tally.note(`chaos, seed ${plan.seed}`);
  const prng = new Prng(plan.seed);
  const network = await Network.open(plan.seed);
  const [topology] = TOPOLOGIES as [Topology];
  await addMachines(network, topology);
  const clocks = await FakeClocks.open(folder, ["s2", "n1"]);
  const verdicts: Verdict[] = [];
  const stages = TOPOLOGIES.filter(({ isInCut }) => isInCut || !plan.isCut);
  for (const topology of stages) {
    const player = new Player(plan, topology, prng, tally, verdicts);
    const home = `${folder}/${topology.state}`;
    try {
      await player.play(home, network, clocks);
    } catch (error) {
      tally.fail(topology.name, error);
    }
  }
  for (const line of reportTable(verdicts)) tally.note(line);
  tally.note(`again: deno task lab chaos --seed ${plan.seed}`);
  return tally.end();
}

/** One stage from its start to its end. */
class Player {
  readonly #ledger = new Ledger();

  constructor(
    readonly plan: RunPlan,
    readonly topology: Topology,
    readonly prng: Prng,
    readonly tally: Tally,
    readonly verdicts: Verdict[],
  ) {}

  async play(
    folder: string,
    network: Network,
    clocks: FakeClocks,
  ): Promise<void> {
    const { topology, tally } = this;
    if (this.#asked.length === 0) return;
    const atMs = Date.now();
    await Deno.mkdir(folder);
    await using stage = await Stage.open(topology, folder, network, clocks);
    const load = new Load(
      {
        entrances: stage.entrances,
        targets: targetsOf(topology),
        machineAt: (address) => network.machineAt(address),
      },
      this.#ledger,
      this.prng,
    );
    const leaks = new LeakWatch(stage);
    load.start();
    try {
      await this.#playFaults(stage, load, leaks, atMs);
    } finally {
      await load.stop();
    }
    await leaks.judge(tally);
  }

  async #playFaults(
    stage: Stage,
    load: Load,
    leaks: LeakWatch,
    atMs: number,
  ): Promise<void> {
    const { name } = this.topology;
    const tookMs = await this.#untilWell(load, atMs, FIRST_WELL_MS);
    this.tally.note(`${name}: well ${Math.round(tookMs)} ms after start`);
    if (!Number.isFinite(tookMs)) {
      throw new Error(`never well:\n${load.complaints(atMs).join("\n")}`);
    }
    for (const faults of [this.#faults(stage), this.#pairs(stage)]) {
      for (const fault of faults) {
        await this.#one(stage, load, fault);
        leaks.sample();
      }
    }
  }

  /** Faults of this stage that were asked for. */
  get #asked(): [string, FaultMaker][] {
    const { only, isCut } = this.plan;
    const all = Object.entries(faultsOf(this.topology.state, isCut));
    if (only.length === 0) return all;
    return all.filter(([name]) => only.some((begin) => name.startsWith(begin)));
  }

  /** As they come: whom each hits is drawn when the one before is over. */
  *#faults(stage: Stage): Generator<Fault> {
    for (const [name, make] of this.#asked) {
      const made = make(stage, this.prng);
      if (typeof made !== "string") yield made;
      else if (this.plan.isStrict) this.tally.fail(name, made);
      else this.tally.skip(name, made);
    }
  }

  /** Two at once, until the stage's share of the time is over. */
  *#pairs(stage: Stage): Generator<Fault> {
    const endMs = Date.now() + this.plan.minutes * 60_000 / TOPOLOGIES.length;
    const own = this.#asked.map(([, make]) => make);
    const others = Object.values(PAIRED_FAULTS);
    while (Date.now() < endMs) {
      const pair = drawPair(own, others, stage, this.prng);
      if (pair === undefined) return;
      yield pair;
    }
  }

  async #one(stage: Stage, load: Load, fault: Fault): Promise<void> {
    const { tally } = this;
    const beginMs = Date.now();
    const problems: string[] = [];
    await fault.apply();
    const appliedMs = Date.now();
    await sleep(Math.max(0, beginMs + fault.lastsMs - Date.now()));
    await fault.check?.().catch((error: Error) => problems.push(error.message));
    await fault.undo();
    const undoneMs = Date.now();
    const limitMs = (fault.allows.backMs ?? BACK_MS_DEFAULT) + BACK_GRACE_MS;
    const backMs = await this.#untilWell(load, undoneMs, limitMs);
    if (!Number.isFinite(backMs)) problems.push(...load.complaints(undoneMs));
    problems.push(...await this.#untilLinked(stage, undoneMs + limitMs));
    const linkedMs = Date.now() - undoneMs;
    const verdict = judge(this.#ledger.since(beginMs), {
      ...{ name: fault.name, allows: fault.allows },
      ...{ appliedMs, backMs, linkedMs, problems },
    });
    this.verdicts.push(verdict);
    const line = `${fault.name}: ${verdict.dials} dials, ${verdict.failed} ` +
      `failed, slowest ${verdict.slowestDialMs} ms, longest stall ` +
      `${verdict.longestStallMs} ms, well after ${Math.round(backMs)} ms`;
    if (verdict.problems.length === 0) tally.pass(line);
    else tally.fail(line, verdict.problems.join("\n"));
    for (const [cause, count] of verdict.causes.slice(0, 4)) {
      tally.note(`     ${count} × ${cause}`);
    }
    load.renew(beginMs);
    await this.#untilWell(load, Date.now(), limitMs);
  }

  /** Every agent has all its links to every server. @returns Who has not. */
  async #untilLinked(stage: Stage, deadlineMs: number): Promise<string[]> {
    const wanted = stage.topology.agents.length * LINKS;
    for (;;) {
      const short: string[] = [];
      for (const server of stage.servers.values()) {
        const has = await stage.gauge(server, "tunnel_server_links");
        // More come while some are doubted, and stay.
        if (has < wanted || has > 2 * wanted) {
          short.push(`${server.name} has ${has} links, wanted are ${wanted}`);
        }
      }
      if (short.length === 0 || Date.now() > deadlineMs) return short;
      await sleep(LOOK_MS * 4);
    }
  }

  /** @returns Milliseconds since `sinceMs`; `Infinity` when it takes longer. */
  async #untilWell(
    load: Load,
    sinceMs: number,
    limitMs: number,
  ): Promise<number> {
    while (Date.now() - sinceMs < limitMs) {
      if (load.complaints(sinceMs).length === 0) return Date.now() - sinceMs;
      await sleep(LOOK_MS);
    }
    return Infinity;
  }
}
