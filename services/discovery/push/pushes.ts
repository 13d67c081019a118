/**
 * Which clients are sent a change, and when: `Debounce` gathers changes,
 * `ViewPreparation` generates the view of each group, and `PushQueue` pushes to one
 * stream after the other.
 *
 * Reading order: `changed`, `#push`.
 *
 * @module
 */

import { isTracing, startSpan } from "../../../platform/tracing/tracing.ts";
import {
  guarded,
  INTERNAL_ERROR,
  reportInternalError,
} from "../../../platform/errors/internal_errors.ts";
import { Slices } from "../../../platform/time/slices.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import type { Diff } from "../../catalog/diff.ts";
import { keyOf } from "../../catalog/model/model.ts";
import { StatusCode } from "../../../proto/grpc/status.ts";
import type { Timers } from "../../../proto/sync/clock.ts";
import type { ClientGroup } from "../generate/client_group.ts";
import type { Views } from "../generate/views.ts";
import type { DiscoveryMetrics } from "../streams/discovery_metrics.ts";
import type { UnservedLog } from "../status/unserved_log.ts";
import type { SubscriberStream } from "../streams/subscriber_stream.ts";
import { Debounce } from "./debounce.ts";
import { PushQueue } from "../streams/push_queue.ts";

/** What {@linkcode Pushes} needs. */
export interface PushesOptions {
  /** See `DebounceOptions`. */
  readonly windowMinMs: number;
  readonly windowMaxMs: number;
  readonly timers: Timers;
  readonly catalog: Catalog;
  readonly views: Views;
  /** All open streams. */
  readonly streams: ReadonlySet<SubscriberStream>;
  readonly metrics: DiscoveryMetrics;
  readonly unserved: UnservedLog;
}

const PUSH_FAILED = { code: StatusCode.INTERNAL, message: INTERNAL_ERROR };

/** See the module description. */
export class Pushes {
  readonly #debounce: Debounce;
  readonly #preparation: ViewPreparation;
  readonly #queue: PushQueue<SubscriberStream>;
  /** When the first change of the next push came. */
  #changedMs: number | undefined;
  /** The same of the push that runs, or was last. */
  #pushedMs = 0;

  constructor(private readonly options: PushesOptions) {
    const { windowMinMs, windowMaxMs, timers, views, metrics } = options;
    this.#preparation = new ViewPreparation(views, timers);
    this.#debounce = new Debounce({
      windowMinMs,
      windowMaxMs,
      timers,
      push: (done) => this.#push(done),
      merged: () => metrics.counters.merged_changes_total.add(),
    });
    this.#queue = new PushQueue({
      timers,
      push: (stream, sinceMs) => {
        const waitedMs = timers.now() - sinceMs;
        metrics.histograms.queue_seconds.observe(waitedMs / 1_000);
        guarded(
          "stream",
          () => stream.push(Math.max(this.#pushedMs, stream.sinceMs)),
          // The client reconnects, and receives everything.
          () => stream.end(PUSH_FAILED),
        );
      },
    });
  }

  /**
   * The catalog or the rules about visible services have changed.
   *
   * @param diff Of the catalog, if that has changed.
   */
  changed(diff?: Diff): void {
    this.#changedMs ??= this.options.timers.now();
    this.#debounce.changed(diff && losersIn(diff));
  }

  /** A new stream receives its first push. */
  add(stream: SubscriberStream): void {
    this.#preparation.prepare(
      [stream.group!],
      () => this.#queue.add(stream),
    );
  }

  /** The stream is over. */
  remove(stream: SubscriberStream): void {
    this.#queue.remove(stream);
  }

  /** Nothing is pushed any more. */
  stop(): void {
    this.#debounce.stop();
    this.#preparation.stop();
    this.#queue.stop();
  }

  #push(done: () => void): void {
    const { timers, views, catalog, streams, metrics, unserved } = this.options;
    const startMs = timers.now();
    const span = isTracing ? startSpan("push discovery") : undefined;
    this.#pushedMs = this.#changedMs ?? startMs;
    this.#changedMs = undefined;
    views.update(catalog.snapshot);
    const { made, lacking } = this.#groups();
    for (const [group, waiting] of lacking) {
      this.#preparation.prepare([group], () => {
        this.#queue.addAll(waiting, () => unserved.look());
      });
    }
    this.#preparation.prepare(
      made,
      () =>
        this.#queue.addAll(streams, () => {
          const tookMs = timers.now() - startMs;
          metrics.counters.pushes_total.add();
          metrics.histograms.push_seconds.observe(tookMs / 1_000);
          span?.end();
          unserved.look();
          done();
        }),
    );
  }

  /** Groups with a view, and the streams that wait for their group's view. */
  #groups(): {
    readonly made: ReadonlySet<ClientGroup>;
    readonly lacking: ReadonlyMap<ClientGroup, readonly SubscriberStream[]>;
  } {
    const byKey = new Map<string, ClientGroup>();
    const made = new Set<ClientGroup>();
    const lacking = new Map<ClientGroup, SubscriberStream[]>();
    for (const stream of this.options.streams) {
      if (stream.group === undefined) continue;
      const group = byKey.get(stream.group.key) ?? stream.group;
      byKey.set(group.key, group);
      const waiting = lacking.get(group);
      if (waiting !== undefined) waiting.push(stream);
      else if (made.has(group)) continue;
      else if (this.options.views.viewOf(group) !== undefined) {
        made.add(group);
      } else lacking.set(group, [stream]);
    }
    return { made, lacking };
  }
}

/** Services that lost endpoints, which clients may still use. */
function* losersIn({ services, endpoints }: Diff): Iterable<string> {
  for (const service of services.removed) yield keyOf(service);
  for (const { service, removed, changed } of endpoints) {
    const isLost = removed.length > 0 ||
      changed.some(({ before, after }) =>
        before.state === "ready" && after.state !== "ready"
      );
    if (isLost) yield service;
  }
}

/** The part of `Views` that is used here. */
export type PreparedViews = Pick<Views, "preparing" | "viewOf">;

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

/**
 * Generates views before they are pushed, a few milliseconds at a time: the view of
 * thousands of services takes a second, in which no link would have its turn.
 *
 * The services of one change are generated at once; only a whole catalog, or a new
 * group of clients in front of one, takes longer than a slice. A new group waits
 * for groups that have a view already, so that their clients receive changes in
 * time.
 */
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
    const isFirst = this.views.viewOf(group) === undefined;
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
