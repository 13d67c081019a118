/**
 * Records of followed folders as they were last seen. What comes late changes
 * nothing: an own change is known before the watch tells of those before it.
 *
 * @module
 */

import { isNewer } from "../kubernetes/object_copy.ts";
import type { RecordChange } from "./place.ts";

/**
 * Removed records that are remembered, so that an older event does not bring
 * them back; such events are milliseconds old.
 */
export const RECORDS_REMOVED_MAX = 1_000;

/** See the module description. */
export class RecordCache {
  readonly #records = new Map<string, Omit<RecordChange, "key">>();
  #removed = 0;

  get(key: string): string | undefined {
    return this.#records.get(key)?.text;
  }

  /** Names in a folder, sorted. */
  names(folder: string): readonly string[] {
    const names: string[] = [];
    for (const [key, { text }] of this.#records) {
      if (text !== undefined && key.startsWith(`${folder}/`)) {
        names.push(key.slice(folder.length + 1));
      }
    }
    return names.sort();
  }

  /** @returns Whether it was news. */
  set({ key, text, version }: RecordChange): boolean {
    const known = this.#records.get(key);
    if (known !== undefined) {
      if (known.version === version && known.text === text) return false;
      if (isNewer(known.version, version)) return false;
    }
    if (known !== undefined && known.text === undefined) this.#removed--;
    this.#records.delete(key);
    this.#records.set(key, { text, version });
    if (text === undefined) this.#forget();
    return true;
  }

  /**
   * All of a folder as it was just now. It counts even if it is older than what
   * was known, because the place may have been set back from a backup; an own
   * change that it does not know yet comes again with the watch.
   */
  replace(folder: string, records: readonly RecordChange[]): void {
    const prefix = `${folder}/`;
    const known = [...this.#records].filter(([key]) => key.startsWith(prefix));
    for (const [key, { text }] of known) {
      this.#records.delete(key);
      if (text === undefined) this.#removed--;
    }
    for (const record of records) this.set(record);
  }

  #forget(): void {
    if (++this.#removed <= RECORDS_REMOVED_MAX) return;
    for (const [key, { text }] of this.#records) {
      if (text !== undefined) continue;
      this.#records.delete(key);
      this.#removed--;
      return;
    }
  }
}
