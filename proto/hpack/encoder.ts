/**
 * Header lists to header blocks (RFC 7541 §6).
 *
 * A field that repeats costs one byte from its second time on: the heads of
 * gRPC calls on one connection differ in little else than their deadline.
 * Knows nothing of frames and streams.
 *
 * Reading order: `HpackEncoder.encode`, then `#writeField`.
 *
 * @module
 */

import {
  INTEGER_BYTES_MAX,
  writeBinaryString,
  writeInteger,
} from "./primitives.ts";
import { fieldBytes, TABLE_SIZE_DEFAULT } from "./dynamic_table.ts";
import { FieldIndex, type NameRecord } from "./field_index.ts";
import { type HeaderField, ListMemo } from "./header_field.ts";
import { encodeHuffman, huffmanBytes } from "./huffman.ts";
import { isOneConnections, isSecret } from "./indexing_rule.ts";

/** Options of {@linkcode HpackEncoder}. */
interface HpackEncoderOptions {
  /**
   * The largest dynamic table we keep, in bytes, however much the peer
   * allows. 4096 by default.
   */
  readonly tableSizeMax?: number;
}

/** The representations of §6 as flag bits and prefix. */
interface Representation {
  readonly flags: number;
  readonly prefixBits: number;
}
const INDEXED: Representation = { flags: 0x80, prefixBits: 7 };
const INCREMENTAL: Representation = { flags: 0x40, prefixBits: 6 };
const SIZE_UPDATE: Representation = { flags: 0x20, prefixBits: 5 };
const NEVER_INDEXED: Representation = { flags: 0x10, prefixBits: 4 };
const NOT_INDEXED: Representation = { flags: 0x00, prefixBits: 4 };
/** The two forms of a string (§5.2). */
const HUFFMAN_STRING: Representation = { flags: 0x80, prefixBits: 7 };
const PLAIN_STRING: Representation = { flags: 0x00, prefixBits: 7 };

/**
 * A name with this many insertions and no repeated value counts as
 * ever-changing (request ids). Its values no longer push others out of the
 * table; only one insertion in so many is tried again.
 */
const MISSES_BEFORE_LITERAL = 8;

/**
 * Encodes one direction of a connection. Blocks must be sent in the order in
 * which they were encoded, each exactly once: they change the peer's table.
 */
export class HpackEncoder {
  readonly #tableSizeMax: number;
  /** Not made while others have written all that this one has. */
  #ownIndex: FieldIndex | undefined;
  #history: EncoderHistory | undefined;
  #output: Uint8Array = sharedOutput;
  #offset = 0;
  /** What the peer believes our table's limit to be. */
  #knownSize: number = TABLE_SIZE_DEFAULT;
  /** The lowest limit since the last block, to be signalled first (§4.2). */
  #lowestSize: number;
  /** Blocks of frozen lists, good for as long as the table is `#memoIsFor`. */
  readonly #memo = new ListMemo<Uint8Array>();
  #memoIsFor = 0;

  constructor(options: HpackEncoderOptions = {}) {
    this.#tableSizeMax = options.tableSizeMax ?? TABLE_SIZE_DEFAULT;
    const size = Math.min(this.#tableSizeMax, TABLE_SIZE_DEFAULT);
    this.#lowestSize = size;
    if (size === TABLE_SIZE_DEFAULT) this.#history = beginning;
  }

  /** Bytes that the dynamic table holds now (§4.1). */
  get tableBytes(): number {
    return this.#index.tableBytes;
  }

  /**
   * Obeys the peer's SETTINGS_HEADER_TABLE_SIZE. The next block starts with the
   * updates that §4.2 wants: the lowest size since the last block, if the table
   * has grown again since, and the final one.
   */
  setPeerTableSize(bytes: number): void {
    const size = Math.min(bytes, this.#tableSizeMax);
    this.#index.resize(size);
    this.#lowestSize = Math.min(this.#lowestSize, size);
    this.#memo.clear();
  }

  /**
   * Encodes one header list.
   *
   * @returns The complete block: a view into a buffer of all encoders, valid
   *   until the next call. Copy it into the frames at once.
   * @throws {TypeError} If a string has code points above 255: a bug of the
   *   caller. Nothing was encoded and the table is as before.
   */
  encode(fields: readonly HeaderField[]): Uint8Array {
    const history = this.#history;
    const step = history?.step(fields);
    if (step !== undefined) {
      this.#history = step.after;
      return step.bytes;
    }
    const block = this.#encodeAlone(fields);
    history?.add(fields, block);
    return block;
  }

  /** The present table; from now on it belongs to this encoder. */
  get #index(): FieldIndex {
    const history = this.#history;
    this.#ownIndex ??= new FieldIndex(
      Math.min(this.#tableSizeMax, TABLE_SIZE_DEFAULT),
    );
    if (history === undefined) return this.#ownIndex;
    this.#history = undefined;
    for (const list of history.lists) this.#encodeAlone(list);
    return this.#ownIndex;
  }

  #encodeAlone(fields: readonly HeaderField[]): Uint8Array {
    const { insertions } = this.#index;
    if (insertions !== this.#memoIsFor) this.#memo.clear();
    this.#memoIsFor = insertions;
    const known = this.#memo.get(fields);
    if (known !== undefined) return known;
    this.#offset = 0;
    // Checked before the table changes: a half-encoded list would put our table
    // ahead of the peer's.
    for (const field of fields) assertBinary(field);
    this.#writeSizeUpdates();
    const start = this.#offset;
    for (const field of fields) this.#writeField(field);
    // A size update must be sent only once; a new entry has moved all others.
    if (start === 0 && this.#index.insertions === insertions) {
      this.#memo.set(fields, this.#output.slice(0, this.#offset));
    }
    return this.#output.subarray(0, this.#offset);
  }

  #writeSizeUpdates(): void {
    const size = this.#index.tableSizeMax;
    const lowest = this.#lowestSize;
    if (lowest < Math.min(size, this.#knownSize)) {
      this.#writeInteger(SIZE_UPDATE, lowest);
      this.#writeInteger(SIZE_UPDATE, size);
    } else if (size !== this.#knownSize) {
      this.#writeInteger(SIZE_UPDATE, size);
    }
    this.#knownSize = size;
    this.#lowestSize = size;
  }

  #writeField(field: HeaderField): void {
    const { name, value } = field;
    const record = this.#index.record(name);
    this.#reserve(name.length + value.length + 3 * INTEGER_BYTES_MAX);
    if (field.neverIndex === true || isSecret(name, value, record.rule)) {
      return this.#writeLiteral(NEVER_INDEXED, field, record);
    }
    const index = this.#index.find(record, value);
    if (index !== 0) {
      record.misses = 0;
      return this.#writeInteger(INDEXED, index);
    }
    if (!this.#shouldInsert(field, record)) {
      return this.#writeLiteral(NOT_INDEXED, field, record);
    }
    // Written first: the name may refer to an entry that the insertion evicts,
    // which §4.4 allows.
    this.#writeLiteral(INCREMENTAL, field, record);
    this.#index.insert(field, record);
  }

  #shouldInsert(field: HeaderField, record: NameRecord): boolean {
    // One field must not evict most of the fields that other lists repeat.
    if (fieldBytes(field) > this.#index.tableSizeMax / 2) return false;
    // Once per name, so that later literals can refer to the name.
    if (record.fixed === undefined && record.serial < 0) return true;
    if (record.rule !== "index") return false;
    const misses = record.misses++;
    return misses < MISSES_BEFORE_LITERAL ||
      misses % MISSES_BEFORE_LITERAL === 0;
  }

  #writeLiteral(
    form: Representation,
    field: HeaderField,
    record: NameRecord,
  ): void {
    const index = this.#index.findName(record);
    this.#writeInteger(form, index);
    if (index === 0) this.#writeString(field.name);
    this.#writeString(field.value);
  }

  #writeString(text: string): void {
    const coded = huffmanBytes(text);
    if (coded < text.length) {
      this.#writeInteger(HUFFMAN_STRING, coded);
      this.#offset = encodeHuffman(text, this.#output, this.#offset);
    } else {
      this.#writeInteger(PLAIN_STRING, text.length);
      this.#offset = writeBinaryString(text, this.#output, this.#offset);
    }
  }

  #writeInteger(form: Representation, value: number): void {
    const { flags, prefixBits } = form;
    const into = this.#output;
    this.#offset = writeInteger(into, this.#offset, prefixBits, flags, value);
  }

  #reserve(bytes: number): void {
    const wanted = this.#offset + bytes;
    if (wanted <= this.#output.length) return;
    const larger = new Uint8Array(2 ** Math.ceil(Math.log2(wanted)));
    larger.set(this.#output.subarray(0, this.#offset));
    this.#output = larger;
  }
}

/** One for all encoders: a short connection would pay more for its own. */
const sharedOutput = new Uint8Array(512);

function assertBinary({ name, value }: HeaderField): void {
  for (const text of [name, value]) {
    for (let index = 0; index < text.length; index++) {
      if (text.charCodeAt(index) > 0xff) {
        throw new TypeError(
          `Cannot encode the field ${name}: it holds the code point ${
            text.codePointAt(index)
          }, wanted bytes as code points 0-255`,
        );
      }
    }
  }
}

// The first lists of encoders and their bytes, shared by encoders that begin
// alike.
//
// On a connection that is made for one call the first lists are the last ones,
// and the same on all such connections: a head and trailers. Two encoders with
// the same lists so far write the same bytes, so as long as the lists agree, an
// encoder copies those bytes and needs neither table nor index.

/** Lists that are followed: a head, trailers, and those of one call more. */
export const HISTORY_LISTS_MAX = 4;

/** The next step: the block of one list, and the encoder's state after it. */
interface HistoryStep {
  readonly bytes: Uint8Array;
  readonly after: EncoderHistory;
}

/** Lists are compared as objects (`ListMemo`). */
export class EncoderHistory {
  readonly #next = new ListMemo<HistoryStep>();

  constructor(
    /** In the order in which they were encoded. */
    readonly lists: readonly (readonly HeaderField[])[] = [],
  ) {}

  /** What encoding `fields` here gave before. */
  step(fields: readonly HeaderField[]): HistoryStep | undefined {
    return this.#next.get(fields);
  }

  /**
   * Remembers what encoding `fields` here gives, unless that is too far from
   * the beginning, the list may still change, or it holds secrets.
   *
   * @param bytes Are copied.
   */
  add(fields: readonly HeaderField[], bytes: Uint8Array): void {
    if (this.lists.length === HISTORY_LISTS_MAX) return;
    if (!Object.isFrozen(fields) || fields.some(isOneConnections)) return;
    const after = new EncoderHistory([...this.lists, fields]);
    this.#next.set(fields, { bytes: bytes.slice(), after });
  }
}

/** The common start of all encoders with a table of the default size. */
const beginning = new EncoderHistory();
