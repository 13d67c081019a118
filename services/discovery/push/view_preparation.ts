/**
 * Generates views before they are pushed, a few milliseconds at a time: the view of
 * thousands of services takes a second, in which no link would have its turn.
 *
 * The services of one change are generated at once; only a whole catalog, or a new
 * group of clients in front of one, takes longer than a slice. A new group waits
 * for groups that have a view already, so that their clients receive changes in
 * time.
 *
 * @module
 */

import { reportInternalError } from "../../../platform/errors/internal_errors.ts";
import type { Timers } from "../../../proto/sync/clock.ts";
import type { ClientGroup } from "../generate/client_group.ts";
import { Slices } from "../streams/slices.ts";

/** The part of `Views` that is used here. */
export interface PreparedViews {
  /** One step for each service to generate, or less. */
  preparing(group: ClientGroup): Iterator<void>;
  /** Absent: its first view is not generated yet, and may take long. */
  lastViewOf(group: ClientGroup): object | undefined;
}

/** A caller that waits for some views. */
interface Job {
  /** How many of them are not ready. */
  left: number;
  done(): void;
}

/** A view that callers wait for. */
interface Work {
  readonly steps: Iterator<void>;
  readonly jobs: Job[];
}

/** See the module description. */
export class ViewPreparation {
  // By the group's key, in the order of their turns.
  readonly #updates = new Map<string, Work>();
  readonly #firsts = new Map<string, Work>();
  readonly #slices: Slices;

  constructor(private readonly views: PreparedViews, timers: Timers) {
    this.#slices = new Slices(timers, {
      hasMore: () => this.isBusy,
      step: () => this.#step(),
    });
  }

  /** Whether views are being generated. */
  get isBusy(): boolean {
    return this.#updates.size + this.#firsts.size > 0;
  }

  /**
   * Generates views as of now, or later if the catalog changes meanwhile.
   *
   * @param done Called when these are made; before this returns, if that is
   *   soon.
   */
  prepare(groups: Iterable<ClientGroup>, done: () => void): void {
    const job: Job = { left: 0, done };
    for (const group of groups) {
      const { jobs } = this.#workFor(group);
      if (jobs.at(-1) === job) continue;
      jobs.push(job);
      job.left++;
    }
    if (job.left === 0) return done();
    this.#slices.begin();
  }

  /** Forgets all jobs. */
  stop(): void {
    this.#slices.stop();
    this.#updates.clear();
    this.#firsts.clear();
  }

  #workFor(group: ClientGroup): Work {
    const { key } = group;
    const known = this.#updates.get(key) ?? this.#firsts.get(key);
    if (known !== undefined) return known;
    const work = { steps: this.views.preparing(group), jobs: [] };
    const isFirst = this.views.lastViewOf(group) === undefined;
    (isFirst ? this.#firsts : this.#updates).set(key, work);
    return work;
  }

  /** @returns Whether there was anything to do. */
  #step(): boolean {
    const lane = this.#updates.size > 0 ? this.#updates : this.#firsts;
    const [first] = lane;
    if (first === undefined) return false;
    const [key, { steps, jobs }] = first;
    let isOver = true;
    try {
      isOver = steps.next().done === true;
    } catch (error) {
      // Its callers go on with the view before; the other views are next.
      reportInternalError("catalog", error);
    }
    if (!isOver) return true;
    lane.delete(key);
    for (const job of jobs) if (--job.left === 0) job.done();
    return true;
  }
}
