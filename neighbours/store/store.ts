/**
 * The one contract of what servers have in common: records, which are texts at
 * keys of two levels, such as `nodes/edge-7.json` or `ca/roles.json`. A key is
 * the record's path in a state directory, whatever it is kept in.
 *
 * What a store promises: a change is made whole or not at all (where it says
 * that it cannot promise that, in the order of its writes), no two changes
 * overwrite each other unseen, and of several attempts to create a record one
 * wins, over all servers. Knows nothing of what is in a record.
 *
 * @module
 */

/**
 * Folders that `peek` and `watch` know: links are authorized synchronously, by
 * nodes' records; who has an authority wants to hear when it changes.
 */
export const FOLLOWED_FOLDERS = ["nodes", "ca"] as const;

/** See {@linkcode FOLLOWED_FOLDERS}. */
export type FollowedFolder = typeof FOLLOWED_FOLDERS[number];

/** What is noticed about records, whoever changes them. A hint, never the truth. */
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

/** Since when nothing is heard of what the state is kept in, and why. */
export interface StoreOutage {
  readonly sinceMs: number;
  /** One sentence. */
  readonly why: string;
}

/** Where records are read, and how sentences name them. */
export interface Records {
  /** For sentences, such as `the state directory`. */
  readonly noun: string;

  /** Names the place of a record in sentences, such as its path. */
  where(key: string): string;

  /**
   * A record as it is now. Inside a change: which is made only if it is still
   * so then.
   *
   * @throws {StoreError} When it cannot be read; a secret also when others than
   *   its owner could read it.
   */
  read(key: string, secrecy?: "secret"): Promise<string | undefined>;

  /** As `read`; a change is made even if it changes. @throws {StoreError} */
  look(key: string): Promise<string | undefined>;

  /** Names in a folder that begin with `prefix`, sorted. @throws {StoreError} */
  list(folder: string, prefix?: string): Promise<readonly string[]>;
}

/**
 * One attempt at a change: it sees what it wrote, others see nothing of it
 * before it is through. It may be attempted again after somebody else's change,
 * so it does nothing but read and write here.
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

/** Where records are kept. `peek` knows what `read` has read. */
export interface Store extends Records {
  /**
   * Others may have changed a record and `peek` not know it yet: who misses
   * something there reads it before they refuse.
   */
  readonly mayLag: boolean;
  /** Largest record, in bytes of UTF-8. */
  readonly recordBytesMax: number;
  /** What it is kept in cannot be reached: `peek` may be out of date. */
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

  /** Ends what it has under way. */
  close(): Promise<void>;
}
