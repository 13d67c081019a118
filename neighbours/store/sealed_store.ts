/**
 * An engine whose keys of authorities are encrypted where they are kept; all
 * else passes through.
 *
 * @module
 */

import { openText, type SealingKey, sealText } from "./sealing.ts";
import type {
  Records,
  Store,
  StoreOutage,
  StoreTransaction,
  StoreWatcher,
} from "./store.ts";

/** Records that are read in the clear. */
class OpenedRecords<Inner extends Records> implements Records {
  constructor(
    protected readonly inner: Inner,
    protected readonly key: SealingKey | undefined,
  ) {}

  get noun(): string {
    return this.inner.noun;
  }

  where(key: string): string {
    return this.inner.where(key);
  }

  async read(key: string, secrecy?: "secret"): Promise<string | undefined> {
    return await this.#opened(key, await this.inner.read(key, secrecy));
  }

  async look(key: string): Promise<string | undefined> {
    return await this.#opened(key, await this.inner.look(key));
  }

  list(folder: string, prefix?: string): Promise<readonly string[]> {
    return this.inner.list(folder, prefix);
  }

  async #opened(
    key: string,
    text: string | undefined,
  ): Promise<string | undefined> {
    if (text === undefined) return undefined;
    return await openText(this.key, this.inner, key, text);
  }
}

/** A change that writes such records. */
export class SealedTransaction extends OpenedRecords<StoreTransaction>
  implements StoreTransaction {
  has(key: string): Promise<boolean> {
    return this.inner.has(key);
  }

  async put(key: string, text: string): Promise<void> {
    await this.inner.put(key, await sealText(this.key, key, text));
  }

  async create(key: string, text: string): Promise<boolean> {
    return await this.inner.create(key, await sealText(this.key, key, text));
  }

  remove(key: string): Promise<boolean> {
    return this.inner.remove(key);
  }
}

/** See the module description. */
export class SealedStore extends OpenedRecords<Store> implements Store {
  get mayLag(): boolean {
    return this.inner.mayLag;
  }

  get recordBytesMax(): number {
    return this.inner.recordBytesMax;
  }

  get outage(): StoreOutage | undefined {
    return this.inner.outage;
  }

  /** What is encrypted is of no folder that is read so. */
  peek(key: string): string | undefined {
    return this.inner.peek(key);
  }

  transact<Result>(
    change: (transaction: StoreTransaction) => Promise<Result>,
  ): Promise<Result> {
    return this.inner.transact((transaction) =>
      change(new SealedTransaction(transaction, this.key))
    );
  }

  watch(watcher: StoreWatcher): () => void {
    return this.inner.watch(watcher);
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}
