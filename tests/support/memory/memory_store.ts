/**
 * A place for a state, in memory: the model that real ones are compared with. Its
 * changes are made one after the other, at once and whole; a test says when it is
 * away.
 *
 * @module
 */

import {
  type CommitOutcome,
  NO_VERSION,
  type Place,
  type PlaceEvents,
  type RecordChange,
  splitKey,
  type VersionedRecord,
} from "../../../neighbours/store/transaction.ts";
import { FOLLOWED_FOLDERS } from "../../../neighbours/store/store.ts";
import { StoreAwayError } from "../../../neighbours/store/store_error.ts";

/** What several servers have in common. */
export class MemoryPlace {
  readonly records = new Map<string, VersionedRecord>();
  readonly stores = new Set<MemoryStore>();
  version = 0;
  /** Nobody reaches it. */
  isAway = false;
  /** Before each commit, as another server might. */
  meanwhile: (() => void) | undefined;

  /** Changes a record without asking anybody. */
  set(key: string, text: string | undefined): string {
    const version = `${++this.version}`;
    if (text === undefined) this.records.delete(key);
    else this.records.set(key, { text, version });
    const changes = [{ key, text, version }];
    for (const store of this.stores) store.tell(changes);
    return version;
  }

  leave(): void {
    this.isAway = true;
    for (const store of this.stores) store.lose();
  }

  comeBack(): void {
    this.isAway = false;
    for (const store of this.stores) store.listen();
  }
}

/** One server's way there. */
export class MemoryStore implements Place {
  readonly noun = "the state in memory";
  readonly name = "a model";
  readonly recordBytesMax = 10_000;
  #events: PlaceEvents | undefined;

  constructor(private readonly place: MemoryPlace) {}

  where(key: string): string {
    return `${key} in memory`;
  }

  async get(key: string): Promise<VersionedRecord | undefined> {
    await this.#arrive();
    return this.place.records.get(key);
  }

  async list(
    folder: string,
    prefix: string,
  ): Promise<ReadonlyMap<string, VersionedRecord>> {
    await this.#arrive();
    return new Map(
      [...this.place.records]
        .filter(([key]) => key.startsWith(`${folder}/${prefix}`))
        .map(([key, record]) => [splitKey(key)[1], record]),
    );
  }

  async commit(
    writes: readonly RecordChange[],
    guards: readonly Pick<RecordChange, "key" | "version">[],
  ): Promise<CommitOutcome> {
    await this.#arrive();
    this.place.meanwhile?.();
    const { records } = this.place;
    const isSo = [...writes, ...guards].every(({ key, version }) =>
      (records.get(key)?.version ?? NO_VERSION) === version
    );
    if (!isSo) return { kind: "conflict" };
    const versions = writes.map(({ key, text }) => this.place.set(key, text));
    return { kind: "done", versions };
  }

  follow(events: PlaceEvents): void {
    this.#events = events;
    this.place.stores.add(this);
    this.listen();
  }

  stop(): Promise<void> {
    this.place.stores.delete(this);
    return Promise.resolve();
  }

  listen(): void {
    if (this.place.isAway) return this.lose();
    for (const folder of FOLLOWED_FOLDERS) {
      const records = [...this.place.records]
        .filter(([key]) => key.startsWith(`${folder}/`))
        .map(([key, record]) => ({ key, ...record }));
      this.#events?.listed(folder, records);
    }
    this.#events?.following();
  }

  tell(changes: readonly RecordChange[]): void {
    if (!this.place.isAway) this.#events?.changed(changes);
  }

  lose(): void {
    this.#events?.problem("it is away", false);
  }

  async #arrive(): Promise<void> {
    await Promise.resolve();
    if (this.place.isAway) throw new StoreAwayError("Cannot reach a model");
  }
}
