/**
 * The records of all joined nodes, kept in memory from the first request for
 * them. A state directory has a file for each node: reading five thousand takes
 * a quarter of a second, so it happens once, and in pieces.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import type { NodeRecord, NodeStore } from "./node_store.ts";
import { StoreError } from "../../neighbours/store/store_error.ts";

/** How long records are read at a stretch. */
const SLICE_MS = 3;

/** For each unreadable record, why. */
export interface DamagedNode {
  readonly name: string;
  readonly damage: string;
}

/** The knowledge about a joined node. */
export type BookEntry = NodeRecord | DamagedNode;

/** See the module description. */
export class NodeBook {
  #entries: Map<string, BookEntry> | undefined;
  /** Changed since they were read; `all`: any may have. */
  #stale: Set<string> | "all" = "all";
  #reading: Promise<ReadonlyMap<string, BookEntry>> | undefined;

  constructor(private readonly store: NodeStore) {}

  /** A record was written or removed; all may be, without a name. */
  changed(name?: string): void {
    if (name === undefined) this.#stale = "all";
    else if (this.#stale !== "all") this.#stale.add(name);
  }

  /** The present records. They are read again only after a change. */
  entries(): Promise<ReadonlyMap<string, BookEntry>> {
    return this.#reading ??= this.#read().finally(() =>
      this.#reading = undefined
    );
  }

  async #read(): Promise<ReadonlyMap<string, BookEntry>> {
    const stale = this.#stale;
    // What changes while it is read is stale again.
    this.#stale = new Set();
    try {
      if (stale !== "all" && this.#entries !== undefined) {
        await this.#readSome(stale, this.#entries);
        return this.#entries;
      }
      const entries = new Map<string, BookEntry>();
      await this.#readSome(await this.store.names(), entries);
      return this.#entries = entries;
    } catch (error) {
      this.#stale = "all";
      if (error instanceof StoreError && this.#entries !== undefined) {
        return this.#entries;
      }
      throw error;
    }
  }

  async #readSome(
    names: Iterable<string>,
    into: Map<string, BookEntry>,
  ): Promise<void> {
    let untilMs = performance.now() + SLICE_MS;
    for (const name of names) {
      const entry = this.#one(name);
      if (entry === undefined) into.delete(name);
      else into.set(name, entry);
      if (performance.now() < untilMs) continue;
      await new Promise((go) => setImmediate(go));
      untilMs = performance.now() + SLICE_MS;
    }
  }

  #one(name: string): BookEntry | undefined {
    try {
      return this.store.read(name);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      return { name, damage: error.message };
    }
  }
}
