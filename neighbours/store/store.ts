/**
 * The contract of the servers' common state: records, which are texts at keys
 * of two levels, such as `nodes/edge-7.json` or `ca/roles.json`. In every kind
 * of store a key is the record's path in a state directory.
 *
 * A store promises: a change is made completely or not at all (a store that
 * cannot do that says so, and keeps the order of writes); no change overwrites
 * another one unnoticed; and of several attempts to create a record one wins,
 * over all servers. It does not know the content of records.
 *
 * @module
 */

/**
 * Folders that `peek` and `watch` know: links are authorized synchronously, by
 * nodes' records; a server with an authority must learn when it changes.
 */
export const FOLLOWED_FOLDERS = ["nodes", "ca"] as const;

/** See {@linkcode FOLLOWED_FOLDERS}. */
export type FollowedFolder = typeof FOLLOWED_FOLDERS[number];

/** Reports of changed records, by any program. They are only hints. */
export interface StoreWatcher {
  /**
   * Records were written or removed.
   *
   * @param names Of the records, without the folder; absent: any may have been.
   */
  onChange(folder: FollowedFolder, names?: readonly string[]): void;
  /** Watching is not possible, or has ended; one line. */
  onProblem(line: string): void;
}

/** Since when the store does not answer, and why. */
export interface StoreOutage {
  readonly sinceMs: number;
  /** One sentence. */
  readonly why: string;
}

/** Reads records, and has the store's name for sentences. */
export interface Records {
  /** Its name in sentences, such as `the state directory`. */
  readonly noun: string;

  /** Names the place of a record in sentences, such as its path. */
  where(key: string): string;

  /**
   * The present record. Inside a change: the change is made only if the record
   * is still the same.
   *
   * @throws {StoreError} When it cannot be read; a secret also when other users
   *   than its owner could read it.
   */
  read(key: string, secrecy?: "secret"): Promise<string | undefined>;

  /**
   * Like `read`; but a change is made even if this record changes. @throws
   * {StoreError}
   */
  look(key: string): Promise<string | undefined>;

  /** Names in a folder that begin with `prefix`, sorted. @throws {StoreError} */
  list(folder: string, prefix?: string): Promise<readonly string[]>;
}

/**
 * One attempt at a change: it sees its own writes, and other readers do not see
 * them before the end. It may be attempted again after another program's
 * change, so it must only read and write here.
 */
export interface StoreTransaction extends Records {
  /** Whether there is such a record, readable or not. @throws {StoreError} */
  has(key: string): Promise<boolean>;
  /** Writes a record. @throws {StoreError} */
  put(key: string, text: string): Promise<void>;
  /**
   * Writes a record that is not there.
   *
   * @returns Whether it was not there; if it is when the change is made, all is
   *   attempted again.
   * @throws {StoreError}
   */
  create(key: string, text: string): Promise<boolean>;
  /** @returns Whether there was such a record. @throws {StoreError} */
  remove(key: string): Promise<boolean>;
}

/** The place of records. `peek` returns the last result of `read`. */
export interface Store extends Records {
  /**
   * Other servers may have changed a record without `peek` knowing it yet: code
   * that misses a record there must read it before it refuses.
   */
  readonly mayLag: boolean;
  /** Largest record, in bytes of UTF-8. */
  readonly recordBytesMax: number;
  /** The store cannot be reached: `peek` may be out of date. */
  readonly outage: StoreOutage | undefined;

  /**
   * A record of a followed folder as far as is known, at once.
   *
   * @throws {StoreError} When it cannot be read.
   */
  peek(key: string): string | undefined;

  /**
   * Changes records; see {@linkcode StoreTransaction}. Not from inside another
   * change.
   *
   * @throws {StoreError} When it could not be made; else what `change` throws.
   */
  transact<Result>(
    change: (transaction: StoreTransaction) => Promise<Result>,
  ): Promise<Result>;

  /** Starts to watch. @returns How to end it. */
  watch(watcher: StoreWatcher): () => void;

  /** Ends running requests. */
  close(): Promise<void>;
}
