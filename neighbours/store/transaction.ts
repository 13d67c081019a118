/**
 * One attempt at a change of a state that is not on this machine: what it reads
 * is remembered with its version, what it writes is kept until it is through.
 *
 * @module
 */

import {
  type CommitOutcome,
  NO_VERSION,
  type Place,
  type RecordChange,
  type VersionedRecord,
} from "./place.ts";
import type { StoreTransaction } from "./store.ts";
import { StoreError } from "./store_error.ts";

/** See the module description. */
export class Transaction implements StoreTransaction {
  readonly #read = new Map<string, VersionedRecord | undefined>();
  readonly #guarded = new Set<string>();
  /** In the order in which they were said first. */
  readonly #writes = new Map<string, string | undefined>();

  constructor(private readonly store: Place) {}

  get noun(): string {
    return this.store.noun;
  }

  where(key: string): string {
    return this.store.where(key);
  }

  read(key: string): Promise<string | undefined> {
    this.#guarded.add(key);
    return this.look(key);
  }

  async look(key: string): Promise<string | undefined> {
    if (this.#writes.has(key)) return this.#writes.get(key);
    return (await this.#fetch(key))?.text;
  }

  async has(key: string): Promise<boolean> {
    return await this.look(key) !== undefined;
  }

  async list(folder: string, prefix = ""): Promise<readonly string[]> {
    const found = await this.store.list(folder, prefix);
    const names = new Set(found.keys());
    for (const [name, record] of found) {
      const key = `${folder}/${name}`;
      // What was read first is what the change depends on.
      if (!this.#read.has(key)) this.#read.set(key, record);
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
    const bytes = new TextEncoder().encode(text).length;
    const { recordBytesMax } = this.store;
    if (bytes > recordBytesMax) {
      throw new StoreError(
        `Cannot keep ${this.where(key)}: it has ${bytes} bytes, at most ` +
          `${recordBytesMax} are possible there`,
      );
    }
    // Its version: nobody else's change is overwritten unseen.
    await this.#fetch(key);
    this.#writes.set(key, text);
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

  /** Makes the change, if nobody else was faster. @throws {StoreError} */
  async commit(): Promise<CommitOutcome> {
    const { writes } = this;
    if (writes.length === 0) return { kind: "done", versions: [] };
    const guards = [...this.#guarded]
      .filter((key) => !this.#writes.has(key))
      .map((key) => ({ key, version: this.#versionOf(key) }));
    return await this.store.commit(writes, guards);
  }

  async #fetch(key: string): Promise<VersionedRecord | undefined> {
    if (!this.#read.has(key)) this.#read.set(key, await this.store.get(key));
    return this.#read.get(key);
  }

  #versionOf(key: string): string {
    return this.#read.get(key)?.version ?? NO_VERSION;
  }
}
