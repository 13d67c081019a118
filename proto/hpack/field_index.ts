/**
 * Finds fields and names in the encoder's tables, by hash instead of by search.
 *
 * Wraps the dynamic table and is notified of every insertion and eviction, so
 * the two cannot differ. Knows nothing of how fields are written.
 *
 * @module
 */

import { DynamicTable } from "./dynamic_table.ts";
import type { HeaderField } from "./header_field.ts";
import { type IndexingRule, indexingRule } from "./indexing_rule.ts";
import {
  DYNAMIC_INDEX_FIRST,
  STATIC_NAMES,
  type StaticName,
} from "./static_table.ts";

/** The positions of one field name. */
export interface NameRecord {
  readonly rule: IndexingRule;
  readonly fixed: StaticName | undefined;
  /**
   * Value → serial number in the dynamic table. Made with the first entry:
   * connections may be many and short, and most names never get one.
   */
  serials: Map<string, number> | undefined;
  /** The youngest entry with this name, or -1. */
  serial: number;
  /** Values not found since one was found; the encoder counts. */
  misses: number;
}

export class FieldIndex {
  readonly #table: DynamicTable;
  readonly #names: Map<string, NameRecord> = new Map();

  /** @param sizeMax Bytes of the dynamic table (§4.1). */
  constructor(sizeMax: number) {
    this.#table = new DynamicTable(sizeMax, (entry, serial) => {
      this.#forget(entry, serial);
    });
  }

  /** Bytes that the dynamic table holds now. */
  get tableBytes(): number {
    return this.#table.sizeBytes;
  }

  /** How many entries were ever inserted into the dynamic table. */
  get insertions(): number {
    return this.#table.nextSerial;
  }

  /** The limit of {@linkcode FieldIndex.tableBytes}. */
  get tableSizeMax(): number {
    return this.#table.sizeMax;
  }

  /**
   * Names that are remembered: those that this folder lists, and those that
   * have an entry. So the limit of the table limits them too.
   */
  get nameCount(): number {
    return this.#names.size;
  }

  /** Changes the limit of the dynamic table and evicts entries over it. */
  resize(sizeMax: number): void {
    this.#table.resize(sizeMax);
  }

  /** The record of `name`; good until the next insertion. */
  record(name: string): NameRecord {
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    const record: NameRecord = {
      rule: indexingRule(name),
      fixed: STATIC_NAMES.get(name),
      serials: undefined,
      serial: -1,
      misses: 0,
    };
    if (isListed(record)) this.#names.set(name, record);
    return record;
  }

  /** The index of the whole field, or 0. */
  find(record: NameRecord, value: string): number {
    const serial = record.serials?.get(value);
    if (serial !== undefined) return this.#indexOf(serial);
    return record.fixed?.values.get(value) ?? 0;
  }

  /** An index with the name, or 0. */
  findName(record: NameRecord): number {
    if (record.fixed !== undefined) return record.fixed.index;
    return record.serial < 0 ? 0 : this.#indexOf(record.serial);
  }

  /**
   * Inserts a field that was not found and fits.
   *
   * @param record That of its name.
   */
  insert(field: HeaderField, record: NameRecord): void {
    record.serial = this.#table.nextSerial;
    this.#table.insert(field);
    record.serials ??= new Map();
    record.serials.set(field.value, record.serial);
    // Again, for the insertion may have evicted the last one of this name.
    this.#names.set(field.name, record);
  }

  #indexOf(serial: number): number {
    return DYNAMIC_INDEX_FIRST + this.#table.nextSerial - 1 - serial;
  }

  #forget(entry: HeaderField, serial: number): void {
    const record = this.#names.get(entry.name)!; // It has an entry: this one.
    record.serials?.delete(entry.value);
    // The oldest leave first, so the youngest leaves last.
    if (record.serial !== serial) return;
    record.serial = -1;
    if (!isListed(record)) this.#names.delete(entry.name);
  }
}

/** Whether a record stays without entries: there are finitely many such names. */
function isListed(record: NameRecord): boolean {
  return record.fixed !== undefined || record.rule !== "index";
}
