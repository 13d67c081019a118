/**
 * A state that is kept elsewhere: followed folders are copied here, so that
 * links are authorized at once and continue when the place is away; changes are
 * repeated until no other client was faster.
 *
 * While the place is away nothing can be changed, and the copy is served. When
 * it is back all is read again, and watchers learn that anything may have
 * changed.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import { atMost } from "../../platform/time/deadline.ts";
import { pause } from "../../platform/time/pause.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import {
  type Place,
  type PlaceEvents,
  type RecordChange,
  splitKey,
  textOf,
  Transaction,
} from "./transaction.ts";
import { openText, type SealingKey } from "./sealing.ts";
import {
  FOLLOWED_FOLDERS,
  type FollowedFolder,
  type Store,
  type StoreOutage,
  type StoreTransaction,
  type StoreWatcher,
} from "./store.ts";
import {
  awayLine,
  backLine,
  StoreAwayError,
  StoreError,
} from "./store_error.ts";
import { ObjectCopy } from "../kubernetes/object_copy.ts";
import type { KubernetesObject } from "../kubernetes/objects.ts";

/** How long the first reading may take, and all that a start asks then. */
export const OPEN_TIMEOUT_MS = 15_000;

/**
 * A change that loses this often competes with hundreds for the same record:
 * its caller tries again.
 */
export const ATTEMPTS_MAX = 32;

/** Longest wait between two attempts. */
const RETRY_WAIT_MS = 100;

/**
 * After a request that waited this long for an answer, further requests are
 * refused for as long, so that they do not all wait for the same deadline.
 */
const REFUSED_MS = 1_000;

/**
 * A request that fails sooner is repeated: a place that has just come back ends
 * connections and refuses requests that it cannot serve yet.
 */
const ASKED_AGAIN_MAX = 4;

/** Wait before a repetition; times the number of the attempt. */
const ASKED_AGAIN_MS = 200;

/** What a store needs beside its place. */
export interface RemoteStoreOptions {
  readonly store: Place;
  /** What private keys are encrypted with; absent: nothing. */
  readonly key?: SealingKey | undefined;
  readonly timers: Timers;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** The place is away, and back: one line each, once each. */
  readonly warn: (line: string) => void;
}

/** See the module description. */
export class RemoteStore implements Store {
  readonly mayLag = true;
  readonly #store: Place;
  /** Records of followed folders as they were last seen. */
  readonly #copies = new Map(
    FOLLOWED_FOLDERS.map((folder) =>
      [folder as string, new ObjectCopy<KeptRecord>()] as const
    ),
  );
  readonly #watchers = new Set<StoreWatcher>();
  readonly #closing = new AbortController();
  readonly #opening = Promise.withResolvers<void>();
  /** One change at a time: those of one process are no rivals of each other. */
  #queue: Promise<unknown> = Promise.resolve();
  /** Everything was seen once. */
  #isOpen = false;
  #isFollowed = false;
  #outage: StoreOutage | undefined;
  #refusedUntilMs = -Infinity;

  private constructor(private readonly options: RemoteStoreOptions) {
    this.#store = options.store;
  }

  /**
   * Reads the followed folders.
   *
   * @throws {StoreAwayError} When that is not possible within {@linkcode
   *   OPEN_TIMEOUT_MS}.
   */
  static async open(options: RemoteStoreOptions): Promise<RemoteStore> {
    const store = new RemoteStore(options);
    options.store.follow(store.#events());
    const { timers } = options;
    await atMost(timers, OPEN_TIMEOUT_MS, store.#opening.promise);
    if (store.#isOpen) return store;
    const { name } = options.store;
    const why = store.#outage?.why ?? "it has not sent everything in time";
    // A running request has its own deadline, and its result is not needed.
    unawaited("task", store.close());
    throw new StoreAwayError(`Cannot open the state in ${name}: ${why}`);
  }

  get noun(): string {
    return this.#store.noun;
  }

  get recordBytesMax(): number {
    return this.#store.recordBytesMax;
  }

  get outage(): StoreOutage | undefined {
    return this.#outage;
  }

  where(key: string): string {
    return this.#store.where(key);
  }

  peek(key: string): string | undefined {
    return this.#copies.get(splitKey(key)[0])?.objects.get(key)?.text;
  }

  async read(key: string): Promise<string | undefined> {
    const record = await this.#insisting(() => this.#store.get(key));
    if (record !== undefined) this.#keep({ key, ...record });
    const text = textOf(record);
    if (text === undefined) return undefined;
    return await openText(this.options.key, this, key, text);
  }

  look(key: string): Promise<string | undefined> {
    return this.read(key);
  }

  async list(folder: string, prefix = ""): Promise<readonly string[]> {
    const copy = this.#copies.get(folder);
    if (copy !== undefined) {
      return [...copy.objects.keys()].map((key) => splitKey(key)[1])
        .filter((name) => name.startsWith(prefix)).sort();
    }
    const found = await this.#insisting(() => this.#store.list(folder, prefix));
    return [...found.keys()].sort();
  }

  transact<Result>(
    change: (transaction: StoreTransaction) => Promise<Result>,
  ): Promise<Result> {
    const turn = this.#queue.then(() => this.#transact(change));
    // A change that failed is its caller's; the next one runs all the same.
    this.#queue = turn.catch(() => {});
    return turn;
  }

  watch(watcher: StoreWatcher): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  async close(): Promise<void> {
    this.#watchers.clear();
    this.#closing.abort(new StoreAwayError("The state is closed"));
    await this.#store.stop();
  }

  async #transact<Result>(
    change: (transaction: StoreTransaction) => Promise<Result>,
  ): Promise<Result> {
    const { timers, random } = this.options;
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      const { result, writes, outcome } = await this.#insisting(async () => {
        const transaction = new Transaction(this.#store, this.options.key);
        const result = await change(transaction);
        const { writes } = transaction;
        return { result, writes, outcome: await transaction.commit() };
      });
      if (outcome.kind === "done") {
        this.#note(writes, outcome.versions);
        return result;
      }
      const waitMs = random() * RETRY_WAIT_MS * attempt / ATTEMPTS_MAX;
      await pause(timers, waitMs, this.#closing.signal);
      this.#closing.signal.throwIfAborted();
    }
    throw new StoreError(
      `Cannot change ${this.noun}: others changed the same records ` +
        `${ATTEMPTS_MAX} times meanwhile; try again`,
      "TUN119",
    );
  }

  /** Our own changes are known here before the watch reports them. */
  #note(writes: readonly RecordChange[], versions: readonly string[]): void {
    for (const [index, { key, text }] of writes.entries()) {
      const version = versions[index];
      if (version !== undefined) this.#keep({ key, text, version });
    }
  }

  /**
   * Late reports change nothing: our own change is known before the watch
   * reports earlier ones.
   */
  #keep(record: RecordChange): void {
    const copy = this.#copies.get(splitKey(record.key)[0]);
    const kept = keptRecord(record);
    if (record.text === undefined) copy?.remove(kept);
    else copy?.put(kept);
  }

  /**
   * Asks again where the failure came at once and nothing was changed.
   *
   * @throws {StoreAwayError}
   */
  async #insisting<Result>(ask: () => Promise<Result>): Promise<Result> {
    const { timers } = this.options;
    for (let attempt = 1;; attempt++) {
      const beganMs = timers.now();
      try {
        return await this.#asking(ask);
      } catch (error) {
        const mayHelp = error instanceof StoreAwayError && !error.isOpen &&
          this.#outage === undefined && attempt <= ASKED_AGAIN_MAX &&
          beganMs >= this.#refusedUntilMs &&
          timers.now() - beganMs < REFUSED_MS;
        if (!mayHelp) throw error;
        await pause(timers, ASKED_AGAIN_MS * attempt, this.#closing.signal);
        if (this.#closing.signal.aborted) throw error;
      }
    }
  }

  /** @throws {StoreAwayError} At once when the place is known to be away. */
  async #asking<Result>(ask: () => Promise<Result>): Promise<Result> {
    const { timers } = this.options;
    const isRefused = timers.now() < this.#refusedUntilMs;
    if (this.#outage !== undefined || isRefused) {
      const why = this.#outage?.why ?? "it did not answer just now";
      throw new StoreAwayError(
        `Cannot reach ${this.noun} (${this.#store.name}), so nothing is ` +
          `changed: ${why}`,
      );
    }
    const beganMs = timers.now();
    try {
      return await ask();
    } catch (error) {
      const now = timers.now();
      if (error instanceof StoreAwayError && now - beganMs >= REFUSED_MS) {
        this.#refusedUntilMs = now + REFUSED_MS;
      }
      throw error;
    }
  }

  #events(): PlaceEvents {
    const { warn, wallClock } = this.options;
    const unlisted = new Set<FollowedFolder>(FOLLOWED_FOLDERS);
    return {
      listed: (folder, records) => {
        // The list counts even if it is older than the copy: the place may have
        // been restored from a backup. A change of ours that is missing in it
        // comes again with the watch.
        this.#copies.get(folder)!.replace(records.map(keptRecord));
        unlisted.delete(folder);
        if (this.#isFollowed) this.#tell(folder);
      },
      changed: (changes) => this.#changed(changes),
      following: () => {
        const { sinceMs } = this.#outage ?? {};
        this.#outage = undefined;
        this.#refusedUntilMs = -Infinity;
        this.#isFollowed = true;
        if (unlisted.size === 0) this.#isOpen = true;
        if (this.#isOpen) this.#opening.resolve();
        if (sinceMs === undefined) return;
        warn(backLine(this, wallClock() - sinceMs));
      },
      problem: (why, isLasting) => {
        const isNew = this.#outage === undefined;
        this.#outage = { sinceMs: this.#outage?.sinceMs ?? wallClock(), why };
        if (isLasting) this.#opening.resolve();
        if (!isNew || !this.#isFollowed) return;
        warn(awayLine(this, why));
      },
    };
  }

  #changed(changes: readonly RecordChange[]): void {
    const names = new Map<FollowedFolder, string[]>();
    for (const change of changes) {
      this.#keep(change);
      const [folder, name] = splitKey(change.key);
      if (!isFollowed(folder)) continue;
      const others = names.get(folder) ?? [];
      others.push(name);
      names.set(folder, others);
    }
    for (const [folder, changed] of names) this.#tell(folder, changed);
  }

  #tell(folder: FollowedFolder, names?: readonly string[]): void {
    for (const watcher of [...this.#watchers]) watcher.onChange(folder, names);
  }
}

function isFollowed(folder: string): folder is FollowedFolder {
  return FOLLOWED_FOLDERS.some((followed) => followed === folder);
}

/** A record, as copies keep it. */
interface KeptRecord extends KubernetesObject {
  readonly text: string;
}

function keptRecord({ key, text = "", version }: RecordChange): KeptRecord {
  return { metadata: { name: key, resourceVersion: version }, text };
}
