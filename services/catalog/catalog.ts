/**
 * Services and endpoints as they are now, from all sources together, and their
 * changes for followers.
 *
 * The pipeline: a source says to its sink what there is, or what has changed;
 * what it has said so far (`changes.ts`) is merged with what others say
 * (`snapshot.ts`) into the next snapshot; each follower is handed that, and the
 * difference to the one that it was handed before. All of it happens before the
 * source's call returns, so followers see each change once and in order. A
 * follower that is still busy gets one difference later, over all that has
 * happened meanwhile; nothing waits for it.
 *
 * Reading order: `Catalog.follow`, then `#changed`, `#publish`, `#tell`.
 *
 * @module
 */

import type { Tools } from "../../platform/program/tools.ts";
import {
  reportInternalError,
  unawaited,
} from "../../platform/errors/internal_errors.ts";
import type { Log } from "../../platform/log/log.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import type { SourceEntries } from "./changes.ts";
import { describeDiff, type Diff, diffSnapshots, isEmptyDiff } from "./diff.ts";
import { EMPTY_SNAPSHOT, nextSnapshot, type Snapshot } from "./snapshot.ts";
import type { Source } from "./model/source.ts";
import { SourceInput, type SourceStatus } from "./source_input.ts";

/** Is handed each new snapshot; a promise says that it is busy until then. */
export type Follower = (
  snapshot: Snapshot,
  diff: Diff,
) => void | Promise<void>;

/** The parts of a catalog. */
export interface CatalogOptions extends Tools {
  /** The first that has a service owns it. */
  readonly sources: readonly Source[];
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

export class Catalog {
  readonly #inputs: readonly SourceInput[];
  readonly #entries: readonly SourceEntries[];
  readonly #origins: Origins;
  readonly #reconciler: Reconciler;
  readonly #followers = new Set<Following>();
  #snapshot = EMPTY_SNAPSHOT;
  #written = EMPTY_SNAPSHOT;
  #lastDiff: KnownDiff | undefined;
  #isTelling = false;
  #synced = Promise.withResolvers<void>();

  /**
   * @throws {TypeError} When a source has no name, or the name of another
   *   source.
   */
  constructor(private readonly options: CatalogOptions) {
    const { sources, log, timers, random } = options;
    this.#reconciler = new Reconciler(sources, timers, random);
    const names = new Set<string>();
    for (const { name } of sources) {
      if (name === "" || names.has(name)) {
        throw new TypeError(
          `Cannot have a source named "${name}": each has a name of its own`,
        );
      }
      names.add(name);
    }
    this.#inputs = sources.map((source) =>
      new SourceInput(source, {
        log,
        onChanged: (touched) => this.#changed(touched),
        onSynced: () => this.#onSynced(),
      })
    );
    this.#entries = this.#inputs.map(({ entries }) => entries);
    this.#origins = new Origins(this.#inputs, log);
  }

  /** As everything is now. */
  get snapshot(): Snapshot {
    return this.#snapshot;
  }

  /**
   * Whether every source has delivered its whole state at least once. Before
   * that, a missing service may exist all the same.
   */
  get isSynced(): boolean {
    return this.#inputs.every(({ isSynced }) => isSynced);
  }

  /** In order of precedence. */
  get status(): readonly SourceStatus[] {
    return this.#inputs.map((input) => input.status);
  }

  /** Which source counts for a service. @param key `namespace/name`. */
  originOf(key: string): Origin | undefined {
    return this.#origins.of(key);
  }

  /** Starts the sources. */
  start(): void {
    for (const input of this.#inputs) input.start();
    this.#reconciler.start();
    this.#onSynced();
  }

  /** Known entries stay; no change is published any more. */
  async stop(): Promise<void> {
    this.#reconciler.stop();
    await Promise.all(this.#inputs.map(({ source }) => source.stop()));
  }

  /** Resolves when {@linkcode isSynced} becomes true. */
  whenSynced(): Promise<void> {
    return this.#synced.promise;
  }

  /**
   * Hands over the present state, if there is one, and then every change.
   *
   * @returns A function that ends this.
   */
  follow(follower: Follower): () => void {
    const following: Following = {
      follower,
      seen: EMPTY_SNAPSHOT,
      isBusy: false,
    };
    this.#followers.add(following);
    this.#tell(following);
    return () => void this.#followers.delete(following);
  }

  #changed(touched: ReadonlySet<string>): void {
    this.#origins.touched(touched);
    this.#snapshot = nextSnapshot(this.#snapshot, this.#entries, touched);
    this.#publish();
  }

  #publish(): void {
    // A follower may make a source speak; the loop below goes on with that.
    if (this.#isTelling) return;
    this.#isTelling = true;
    try {
      while (this.#written !== this.#snapshot) {
        this.#write(this.#diff(this.#written, this.#snapshot));
        this.#written = this.#snapshot;
        for (const following of this.#followers) this.#tell(following);
      }
    } finally {
      this.#isTelling = false;
      // It holds the snapshot before.
      this.#lastDiff = undefined;
    }
  }

  /** Nearly all followers share the difference that was computed last. */
  #diff(before: Snapshot, after: Snapshot): Diff {
    let last = this.#lastDiff;
    if (last?.before !== before || last.after !== after) {
      last = { before, after, diff: diffSnapshots(before, after) };
      this.#lastDiff = last;
    }
    return last.diff;
  }

  #write(diff: Diff): void {
    if (isEmptyDiff(diff)) return;
    this.options.log.event(`The catalog has changed: ${describeDiff(diff)}`, {
      version: this.#snapshot.version,
    });
  }

  #tell(following: Following): void {
    const { follower, seen, isBusy } = following;
    const snapshot = this.#snapshot;
    if (isBusy || seen === snapshot || !this.#followers.has(following)) return;
    following.seen = snapshot;
    const diff = this.#diff(seen, snapshot);
    if (isEmptyDiff(diff)) return;
    const busy = tell(follower, snapshot, diff);
    if (busy === undefined) return;
    following.isBusy = true;
    unawaited(
      "catalog",
      busy.finally(() => {
        following.isBusy = false;
        this.#tell(following);
      }),
    );
  }

  #onSynced(): void {
    if (this.isSynced) this.#synced.resolve();
  }
}

/**
 * An error in one follower must not keep the others, or the source, from their
 * turn.
 */
function tell(
  follower: Follower,
  snapshot: Snapshot,
  diff: Diff,
): ReturnType<Follower> {
  try {
    return follower(snapshot, diff);
  } catch (error) {
    reportInternalError("catalog", error);
  }
}

/** A difference, and what between. */
interface KnownDiff {
  readonly before: Snapshot;
  readonly after: Snapshot;
  readonly diff: Diff;
}

/** A follower, and the snapshot that it was handed last. */
interface Following {
  readonly follower: Follower;
  seen: Snapshot;
  isBusy: boolean;
}

/** Names of sources. */
export interface Origin {
  /** The source that describes the service. */
  readonly service: string;
  /** The source of its endpoints; absent: it has none. */
  readonly endpoints?: string;
}

/** Limit on services whose sources are logged; beyond it nothing is logged. */
const SHADOWED_LOGGED_MAX = 1_000;

/**
 * Which source counts for a service, where several speak of it; and a line in the
 * log, once, for each that does not.
 */
class Origins {
  /** By service: the sources, as they were logged. */
  readonly #logged = new Map<string, string>();

  constructor(
    private readonly inputs: readonly SourceInput[],
    private readonly log: Log,
  ) {}

  /** @returns `undefined`: no source describes it. */
  of(key: string): Origin | undefined {
    const owner = this.inputs.find(({ entries }) => entries.services.has(key));
    if (owner === undefined) return undefined;
    const giver = owner.entries.endpoints.has(key)
      ? owner
      : this.inputs.find(({ entries }) => entries.endpoints.has(key));
    const service = owner.source.name;
    return giver === undefined
      ? { service }
      : { service, endpoints: giver.source.name };
  }

  /** Some services may have other sources than before. */
  touched(keys: Iterable<string>): void {
    // With one source only, no entry can hide another one.
    if (this.inputs.length < 2) return;
    for (const key of keys) this.#tell(key);
  }

  #tell(key: string): void {
    const names = this.inputs
      .filter(({ entries }) => entries.services.has(key))
      .map(({ source }) => source.name);
    if (names.length < 2) return void this.#logged.delete(key);
    const text = names.join(" and ");
    if (this.#logged.get(key) === text) return;
    if (this.#logged.size >= SHADOWED_LOGGED_MAX && !this.#logged.has(key)) {
      return;
    }
    this.#logged.set(key, text);
    this.log.event(
      `${key} is described by ${text}: what ${names[0]} says counts`,
    );
  }
}

/** Each wait is drawn between the two: sources and proxies spread out. */
export const RECONCILE_MS_MIN = 600_000;
export const RECONCILE_MS_MAX = 1_800_000;

/**
 * Has every source read all again from time to time.
 *
 * A change that was not reported would stay missed for as long as the process
 * lives: that is how proxies have sent clients to endpoints that were gone for
 * hours. What differs is put right and counted (`SourceStatus.driftRepaired`);
 * anything but 0 there is a defect of a watch.
 */
export class Reconciler {
  readonly #waiting = new Map<Source, Timer>();
  #isStopped = false;

  /** @param random Uniform in [0, 1). */
  constructor(
    private readonly sources: readonly Source[],
    private readonly timers: Timers,
    private readonly random: () => number,
  ) {}

  start(): void {
    for (const source of this.sources) this.#wait(source);
  }

  stop(): void {
    this.#isStopped = true;
    for (const timer of this.#waiting.values()) timer.cancel();
  }

  #wait(source: Source): void {
    if (this.#isStopped) return;
    const delayMs = RECONCILE_MS_MIN +
      this.random() * (RECONCILE_MS_MAX - RECONCILE_MS_MIN);
    const timer = this.timers.after(delayMs, () => {
      // One that takes long is not asked again meanwhile.
      const done = source.reconcile().finally(() => this.#wait(source));
      unawaited("catalog", done);
    });
    this.#waiting.set(source, timer);
  }
}
