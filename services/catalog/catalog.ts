/**
 * Services and endpoints as they are now, from all sources together, and their
 * changes for followers.
 *
 * The pipeline: a source says to its sink what there is, or what has changed;
 * what it has said so far (`changes.ts`) is merged with what others say
 * (`snapshot.ts`) into the next snapshot; each follower is handed that, and the
 * difference to the one that it was handed before. All of it happens before the
 * source's call returns, so followers see each change once and in order; what
 * takes a follower longer, it does later.
 *
 * Reading order: `Catalog.follow`, then `#changed`, `#publish`.
 *
 * @module
 */

import type { Tools } from "../../platform/program/tools.ts";
import { guarded } from "../../platform/errors/internal_errors.ts";
import type { Log } from "../../platform/log/log.ts";
import type { SourceEntries } from "./changes.ts";
import { describeDiff, type Diff, diffSnapshots, isEmptyDiff } from "./diff.ts";
import { EMPTY_SNAPSHOT, nextSnapshot, type Snapshot } from "./snapshot.ts";
import type { Source } from "./model/source.ts";
import { SourceInput, type SourceStatus } from "./source_input.ts";

/** Is handed each new snapshot. */
export type Follower = (snapshot: Snapshot, diff: Diff) => void;

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
  readonly #followers = new Set<Follower>();
  #snapshot = EMPTY_SNAPSHOT;
  /** What followers were handed last. */
  #published = EMPTY_SNAPSHOT;
  #isTelling = false;
  #synced = Promise.withResolvers<void>();

  /**
   * @throws {TypeError} When a source has no name, or the name of another
   *   source.
   */
  constructor(private readonly options: CatalogOptions) {
    const { sources, log } = options;
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
        ...options,
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
    this.#onSynced();
  }

  /** Known entries stay; no change is published any more. */
  async stop(): Promise<void> {
    await Promise.all(this.#inputs.map((input) => input.stop()));
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
    // Who follows twice is told twice.
    const own: Follower = (snapshot, diff) => follower(snapshot, diff);
    this.#followers.add(own);
    const diff = diffSnapshots(EMPTY_SNAPSHOT, this.#published);
    if (!isEmptyDiff(diff)) tell(own, this.#published, diff);
    return () => void this.#followers.delete(own);
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
      while (this.#published !== this.#snapshot) {
        const diff = diffSnapshots(this.#published, this.#snapshot);
        this.#published = this.#snapshot;
        if (!isEmptyDiff(diff)) this.#tellAll(diff);
      }
    } finally {
      this.#isTelling = false;
    }
  }

  #tellAll(diff: Diff): void {
    const snapshot = this.#published;
    this.options.log.event(`The catalog has changed: ${describeDiff(diff)}`, {
      version: snapshot.version,
    });
    // One that comes meanwhile is told by `follow`.
    for (const follower of [...this.#followers]) {
      if (this.#followers.has(follower)) tell(follower, snapshot, diff);
    }
  }

  #onSynced(): void {
    if (this.isSynced) this.#synced.resolve();
  }
}

/**
 * An error in one follower must not keep the others, or the source, from their
 * turn.
 */
function tell(follower: Follower, snapshot: Snapshot, diff: Diff): void {
  guarded("catalog", () => follower(snapshot, diff));
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
