/**
 * Reads each source once and reports its content and its errors, without
 * serving anything.
 *
 * It checks neither whether endpoints answer nor whether ports are free on this
 * machine.
 *
 * @module
 */

import { type Outcome, SourceEntries } from "../catalog/changes.ts";
import {
  EMPTY_SNAPSHOT,
  nextSnapshot,
  type Snapshot,
  targetsOf,
} from "../catalog/snapshot.ts";
import {
  type CatalogChange,
  type CatalogPart,
  type Sink,
  type Source,
  SourceUnusableError,
} from "../catalog/model/source.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import {
  PLAN_TIMEOUT_MS,
  type PlannedAddress,
  plannedAddresses,
  type PlanOptions,
} from "./dns/planned_names.ts";

/** Limit for each source and for all together: more lines help no reader. */
export const PROBLEMS_MAX = 100;

/** The content of one source. */
export interface CheckedSource {
  readonly name: string;
  readonly services: number;
  readonly endpoints: number;
}

export interface SourceReport {
  readonly sources: readonly CheckedSource[];
  /** The faults, one line each. */
  readonly problems: readonly string[];
  /** What may be meant so. */
  readonly notes: readonly string[];
}

/** Reads every source once; those that are away have ten seconds. */
export async function checkSources(
  plan: PlanOptions,
  timers: Timers,
): Promise<SourceReport> {
  const sinks = await Promise.all(
    plan.sources.map((source) => readOnce(source, timers)),
  );
  const entries = sinks.map((sink) => sink.entries);
  const keys = entries.flatMap(({ services, endpoints }) => [
    ...services.keys(),
    ...endpoints.keys(),
  ]);
  const snapshot = nextSnapshot(EMPTY_SNAPSHOT, entries, new Set(keys));
  const places = plannedAddresses(snapshot, plan);
  return {
    sources: sinks.map(({ name, entries: { services, endpointCount } }) => ({
      name,
      services: services.size,
      endpoints: endpointCount,
    })),
    problems: [
      ...sinks.flatMap(({ name, problems }) =>
        shortened(problems).map((problem) => `${name}: ${problem}`)
      ),
      ...shortened(placeProblems(places)),
    ],
    notes: shortened(emptyNotes(snapshot, places)),
  };
}

/** Two ports that want one place; the first to choose gets it. */
function placeProblems(places: readonly PlannedAddress[]): readonly string[] {
  const problems: string[] = [];
  const holders = new Map<string, string>();
  for (const { key, protocol, address } of places) {
    if (address === undefined) {
      problems.push(`${key} is served nowhere: all places are taken`);
      continue;
    }
    const place = `${hostPort(address.hostname, address.port)} (${protocol})`;
    const holder = holders.get(place);
    if (holder === undefined) holders.set(place, key);
    else problems.push(`${holder} and ${key} both want ${place}`);
  }
  return problems;
}

function emptyNotes(
  snapshot: Snapshot,
  places: readonly PlannedAddress[],
): readonly string[] {
  const lonely = [...snapshot.endpoints.keys()]
    .filter((key) => !snapshot.services.has(key))
    .map((key) => `${key} has endpoints, and there is no such service`);
  const empty = places
    .filter(({ service, name }) =>
      targetsOf(snapshot, service, name).length === 0
    )
    .map(({ key }) => `${key} has no endpoint`);
  return [...lonely, ...empty];
}

function shortened(lines: readonly string[]): readonly string[] {
  const more = lines.length - PROBLEMS_MAX;
  return more > 0
    ? [...lines.slice(0, PROBLEMS_MAX), `and ${more} more like these`]
    : lines;
}

async function readOnce(source: Source, timers: Timers): Promise<OneReading> {
  const sink = new OneReading(source.name);
  try {
    await source.prepare?.();
  } catch (error) {
    if (!(error instanceof SourceUnusableError)) throw error;
    sink.failed(error.message);
    return sink;
  }
  const timer = timers.after(
    PLAN_TIMEOUT_MS,
    () => sink.failed(`no answer in ${PLAN_TIMEOUT_MS / 1_000} s`),
  );
  source.start(sink);
  await sink.over;
  timer.cancel();
  await source.stop();
  return sink;
}

/** Takes a source's reports until its state is whole, or it fails. */
class OneReading implements Sink {
  readonly entries = new SourceEntries();
  readonly problems: string[] = [];
  readonly #over = Promise.withResolvers<void>();
  #isOver = false;

  constructor(readonly name: string) {}

  get over(): Promise<void> {
    return this.#over.promise;
  }

  set(part: CatalogPart): void {
    this.#take(this.entries.set(part));
  }

  change(change: CatalogChange): void {
    this.#take(this.entries.change(change));
  }

  repair(part: CatalogPart): void {
    this.set(part);
  }

  refused(problem: string): void {
    if (!this.#isOver) this.problems.push(problem);
  }

  synced(): void {
    this.#isOver = true;
    this.#over.resolve();
  }

  failed(problem: string): void {
    this.refused(problem);
    this.synced();
  }

  #take({ refused }: Outcome): void {
    for (const problem of refused) this.refused(problem);
  }
}
