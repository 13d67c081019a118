/**
 * A sink that keeps what a source says, and lets a test wait for it.
 *
 * @module
 */

import { SourceEntries } from "../../../services/catalog/changes.ts";
import type {
  CatalogChange,
  CatalogPart,
  Sink,
} from "../../../services/catalog/model/source.ts";

/** What was said: `set`, `change`, `repair`, `synced`, `failed: why`, …. */
export type SinkCall = string;

/** See the module description. */
export class RecordedSink implements Sink {
  /** What the source has said so far, taken together. */
  readonly entries = new SourceEntries();
  readonly calls: SinkCall[] = [];
  /** Entries that could not be used. */
  readonly refusals: string[] = [];
  /** How many entries differed in all `repair`. */
  drift = 0;
  #waiters: { readonly pattern: RegExp; readonly resolve: () => void }[] = [];

  set(part: CatalogPart): void {
    this.entries.set(part);
    this.#note("set");
  }

  change(change: CatalogChange): void {
    this.entries.change(change);
    this.#note("change");
  }

  repair(part: CatalogPart): void {
    this.drift += this.entries.set(part).count;
    this.#note("repair");
  }

  refused(problem: string): void {
    this.refusals.push(problem);
    this.#note(`refused: ${problem}`);
  }

  synced(): void {
    this.#note("synced");
  }

  failed(problem: string): void {
    this.#note(`failed: ${problem}`);
  }

  /** The next call that fits. */
  next(pattern: RegExp): Promise<void> {
    return new Promise((resolve) => this.#waiters.push({ pattern, resolve }));
  }

  /** Addresses of a service's endpoints. */
  addresses(key: string): readonly string[] {
    return (this.entries.endpoints.get(key) ?? []).map(({ address }) =>
      address
    );
  }

  #note(call: SinkCall): void {
    this.calls.push(call);
    const due = this.#waiters.filter(({ pattern }) => pattern.test(call));
    this.#waiters = this.#waiters.filter((waiter) => !due.includes(waiter));
    for (const { resolve } of due) resolve();
  }
}
