/**
 * What differs between places that are not on this machine: reading records with
 * their versions, writing several that must not have changed, and following
 * folders. Everything else of a store is the same; see `remote_store.ts`.
 *
 * @module
 */

import type { FollowedFolder } from "./store.ts";
import type { StoreError } from "./store_error.ts";

/** The version of a record that is not there. */
export const NO_VERSION = "0";

/** What is written whatever is there: nobody looked, and a lock is held. */
export const ANY_VERSION = "";

/** A record, and which of its changes made it. Decimal, and grows. */
export interface VersionedRecord {
  readonly text: string;
  readonly version: string;
  /** It is there, and cannot be read. */
  readonly problem?: StoreError;
}

/** A record that is, or is to be, another one; without text it is gone. */
export interface RecordChange {
  readonly key: string;
  readonly text: string | undefined;
  /** Of the change; of a write: the one that it replaces. */
  readonly version: string;
}

/** What became of several writes. */
export type CommitOutcome =
  | {
    readonly kind: "done";
    /** Of what was written, in its order. */
    readonly versions: readonly string[];
  }
  /** Something was changed by others: nothing, or a beginning, was written. */
  | { readonly kind: "conflict" };

/** What a store reports of the folders that it follows. */
export interface PlaceEvents {
  /** All of a folder. */
  listed(folder: FollowedFolder, records: readonly RecordChange[]): void;
  changed(changes: readonly RecordChange[]): void;
  /** Everything is followed. */
  following(): void;
  /**
   * Something is not: what is known may be old.
   *
   * @param why One sentence, no full stop.
   * @param isLasting Waiting does not help: rights, users.
   */
  problem(why: string, isLasting: boolean): void;
}

/** What a change needs of a place. All of it throws `StoreError`. */
export interface TransactionPlace {
  /** For sentences, such as `the state in etcd`. */
  readonly noun: string;
  readonly recordBytesMax: number;
  /** Nobody else changes anything meanwhile. */
  readonly isLocked?: boolean;
  where(key: string): string;
  get(key: string, secrecy?: "secret"): Promise<VersionedRecord | undefined>;
  /** By name in the folder; with what was read of each on the way. */
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

/** See the module description. */
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
