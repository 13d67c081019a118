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
import {
  DYNAMIC_INDEX_FIRST,
  STATIC_NAMES,
  type StaticName,
} from "./static_table.ts";

/** What is known of one field name. */
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

  /** Changes the limit of the dynamic table and evicts what is over it. */
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

/**
 * - `index`: values repeat; insert.
 * - `literal`: values change with every message and would push useful entries
 *   out. The name may still be referred to.
 * - `never`: a secret. An attacker that can make requests of its own on the
 *   same connection could guess an indexed one value by value (§7.1.3), and no
 *   relay may index it either.
 */
type IndexingRule = "index" | "literal" | "never";

// deno-fmt-ignore: grouped by what they have in common.
const RULES: ReadonlyMap<string, IndexingRule> = new Map<string, IndexingRule>([
  ["authorization", "never"], ["proxy-authorization", "never"],
  ["age", "literal"], ["date", "literal"], ["expires", "literal"], ["last-modified", "literal"],
  ["if-modified-since", "literal"], ["if-unmodified-since", "literal"],
  ["etag", "literal"], ["if-match", "literal"], ["if-none-match", "literal"], ["if-range", "literal"],
  ["content-length", "literal"], ["content-range", "literal"], ["range", "literal"],
  ["location", "literal"], ["content-location", "literal"], ["referer", "literal"],
  ["set-cookie", "literal"],
  ["grpc-timeout", "literal"], ["grpc-message", "literal"], ["grpc-status-details-bin", "literal"],
  ["traceparent", "literal"], ["tracestate", "literal"], ["x-request-id", "literal"],
]);

/**
 * Cookies shorter than this are never indexed: few enough guesses would find
 * them. Longer ones repeat and cannot be guessed whole.
 */
export const COOKIE_BYTES_INDEXED_MIN = 20;

/** The rule for all fields called `name`. */
function indexingRule(name: string): IndexingRule {
  return RULES.get(name) ?? "index";
}

/** Whether a field is a secret, by its name and the length of its value. */
export function isSecret(
  name: string,
  value: string,
  rule: IndexingRule,
): boolean {
  return rule === "never" ||
    (name === "cookie" && value.length < COOKIE_BYTES_INDEXED_MIN);
}

/** Whether nothing of a field may be remembered beyond its own connection. */
export function isOneConnections(
  { name, value, neverIndex }: HeaderField,
): boolean {
  return neverIndex === true || name === "cookie" ||
    isSecret(name, value, indexingRule(name));
}
