/**
 * One attempt at a change: its reads are remembered with their versions, and
 * its writes are kept until the end. Private keys are encrypted here.
 *
 * @module
 */

import { openText, type SealingKey, sealText } from "./sealing.ts";
import type { FollowedFolder, StoreTransaction } from "./store.ts";
import { StoreError } from "./store_error.ts";

/** See the module description. */
export class Transaction implements StoreTransaction {
  readonly #read = new Map<string, VersionedRecord | undefined>();
  readonly #guarded = new Set<string>();
  /** In stored form, in the order of the first calls. */
  readonly #writes = new Map<string, string | undefined>();

  /** @param key Absent: nothing is encrypted. */
  constructor(
    private readonly place: TransactionPlace,
    private readonly key: SealingKey | undefined,
  ) {}

  get noun(): string {
    return this.place.noun;
  }

  where(key: string): string {
    return this.place.where(key);
  }

  read(key: string, secrecy?: "secret"): Promise<string | undefined> {
    this.#guarded.add(key);
    return this.look(key, secrecy);
  }

  async look(key: string, secrecy?: "secret"): Promise<string | undefined> {
    const text = this.#writes.has(key)
      ? this.#writes.get(key)
      : textOf(await this.#fetch(key, secrecy));
    if (text === undefined) return undefined;
    return await openText(this.key, this.place, key, text);
  }

  async has(key: string): Promise<boolean> {
    const record = this.#writes.has(key)
      ? this.#writes.get(key)
      : await this.#fetch(key);
    return record !== undefined;
  }

  async list(folder: string, prefix = ""): Promise<readonly string[]> {
    const found = await this.place.list(folder, prefix);
    const names = new Set(found.keys());
    for (const [name, record] of found) {
      const key = `${folder}/${name}`;
      // The change depends on the first reads.
      const isFirst = record !== undefined && !this.#read.has(key);
      if (isFirst) this.#read.set(key, record);
    }
    for (const [key, text] of this.#writes) {
      if (!key.startsWith(`${folder}/${prefix}`)) continue;
      const name = key.slice(folder.length + 1);
      if (text === undefined) names.delete(name);
      else names.add(name);
    }
    return [...names].sort();
  }

  async put(key: string, text: string): Promise<void> {
    const kept = await sealText(this.key, key, text);
    const bytes = new TextEncoder().encode(kept).length;
    const { recordBytesMax, isLocked } = this.place;
    if (bytes > recordBytesMax) {
      throw new StoreError(
        `Cannot keep ${this.where(key)}: it has ${bytes} bytes, at most ` +
          `${recordBytesMax} are possible there`,
      );
    }
    // Its version: no other change is overwritten unnoticed.
    if (!isLocked) await this.#fetch(key);
    this.#writes.set(key, kept);
  }

  async create(key: string, text: string): Promise<boolean> {
    if (await this.has(key)) return false;
    await this.put(key, text);
    return true;
  }

  async remove(key: string): Promise<boolean> {
    const isThere = await this.has(key);
    if (isThere) this.#writes.set(key, undefined);
    return isThere;
  }

  /** What it is to change, with the versions that it replaces. */
  get writes(): readonly RecordChange[] {
    return [...this.#writes]
      .map(([key, text]) => ({ key, text, version: this.#versionOf(key) }))
      // Written and removed again.
      .filter(({ text, version }) =>
        text !== undefined || version !== NO_VERSION
      );
  }

  /** Makes the change, if no other client was faster. @throws {StoreError} */
  async commit(): Promise<CommitOutcome> {
    const { writes } = this;
    if (writes.length === 0) return { kind: "done", versions: [] };
    const guards = [...this.#guarded]
      .filter((key) => !this.#writes.has(key))
      .map((key) => ({ key, version: this.#versionOf(key) }));
    return await this.place.commit(writes, guards);
  }

  async #fetch(
    key: string,
    secrecy?: "secret",
  ): Promise<VersionedRecord | undefined> {
    if (!this.#read.has(key)) {
      this.#read.set(key, await this.place.get(key, secrecy));
    }
    return this.#read.get(key);
  }

  #versionOf(key: string): string {
    if (!this.#read.has(key)) return ANY_VERSION;
    return this.#read.get(key)?.version ?? NO_VERSION;
  }
}

/** @throws {StoreError} When it is there and cannot be read. */
export function textOf(
  record: VersionedRecord | undefined,
): string | undefined {
  if (record?.problem !== undefined) throw record.problem;
  return record?.text;
}

/** The version of a record that is not there. */
export const NO_VERSION = "0";

/** Written unconditionally: it was not read, and a lock is held. */
export const ANY_VERSION = "";

/** A record, and which of its changes made it. Decimal, and grows. */
export interface VersionedRecord {
  readonly text: string;
  readonly version: string;
  /** It is there, and cannot be read. */
  readonly problem?: StoreError;
}

/** A record that changes; without text it is removed. */
export interface RecordChange {
  readonly key: string;
  readonly text: string | undefined;
  /** The version of the change; for a write, the version that it replaces. */
  readonly version: string;
}

/** What became of several writes. */
export type CommitOutcome =
  | {
    readonly kind: "done";
    /** Versions of the written records, in their order. */
    readonly versions: readonly string[];
  }
  /** Something was changed by others: nothing, or a beginning, was written. */
  | { readonly kind: "conflict" };

/** Reports of a store about the folders that it follows. */
export interface PlaceEvents {
  /** All of a folder. */
  listed(folder: FollowedFolder, records: readonly RecordChange[]): void;
  changed(changes: readonly RecordChange[]): void;
  /** Everything is followed. */
  following(): void;
  /**
   * The store cannot be followed: its copy may be old.
   *
   * @param why One sentence, no full stop. @param isLasting Waiting does not
   *   help: rights, users.
   */
  problem(why: string, isLasting: boolean): void;
}

/** What a change needs of a place. All of it throws `StoreError`. */
export interface TransactionPlace {
  /** Its name in sentences, such as `the state in etcd`. */
  readonly noun: string;
  readonly recordBytesMax: number;
  /** No other program changes anything meanwhile. */
  readonly isLocked?: boolean;
  where(key: string): string;
  get(key: string, secrecy?: "secret"): Promise<VersionedRecord | undefined>;
  /** By name in the folder, with records that were read on the way. */
  list(
    folder: string,
    prefix: string,
  ): Promise<ReadonlyMap<string, VersionedRecord | undefined>>;
  /**
   * Writes if nothing changed.
   *
   * @param guards What was read and must still be so.
   */
  commit(
    writes: readonly RecordChange[],
    guards: readonly Pick<RecordChange, "key" | "version">[],
  ): Promise<CommitOutcome>;
}

/**
 * What differs between places that are not on this machine: reading records with
 * their versions, writing several that must not have changed, and following
 * folders. Everything else of a store is the same; see `remote_store.ts`.
 */
export interface Place extends TransactionPlace {
  /** Which one that is, for sentences; no secret. */
  readonly name: string;
  follow(events: PlaceEvents): void;
  stop(): Promise<void>;
}

/** The folder of a record, and its name there. */
export function splitKey(key: string): readonly [folder: string, name: string] {
  const slash = key.indexOf("/");
  return [key.slice(0, Math.max(slash, 0)), key.slice(slash + 1)];
}
