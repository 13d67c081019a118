/**
 * Header blocks to header lists (RFC 7541 §3 and §6).
 *
 * Takes whole blocks: `streams` gathers CONTINUATION frames under a limit of
 * its own. It knows neither the meaning of field names nor frames and streams;
 * it throws {@linkcode HpackError}, and `streams` decides about the connection.
 *
 * Reading order: `HpackDecoder.decode`, then `#readField`, then `#readString`.
 *
 * @module
 */

import { binaryString, type Cursor, readInteger } from "./primitives.ts";
import {
  DynamicTable,
  fieldBytes,
  TABLE_SIZE_DEFAULT,
} from "./dynamic_table.ts";
import { sameBytes } from "../bytes/byte_arrays.ts";
import { type HeaderField, HpackError } from "./header_field.ts";
import { decodedBytesMax, decodeHuffman } from "./huffman.ts";
import { DYNAMIC_INDEX_FIRST, STATIC_TABLE } from "./static_table.ts";
import { isOneConnections } from "./indexing_rule.ts";

/**
 * The longest header list that is handed on by default, by the accounting of
 * RFC 9113 §6.5.2. The value to announce as SETTINGS_MAX_HEADER_LIST_SIZE. Far
 * above any honest request: gRPC peers announce 8–16 KiB.
 */
const HEADER_LIST_BYTES_MAX_DEFAULT = 64 * 1024;

/**
 * How far over the limit we still decode to keep the table in step. Beyond it
 * is no clumsy peer but an HPACK bomb: one-byte references to a 4 KiB entry
 * (§7.3), and the connection ends.
 */
export const HEADER_LIST_HARD_FACTOR = 16;

/** The content of a header block. */
export type HeaderBlock =
  | {
    readonly tooLarge: false;
    /** In the order in which they were sent (§3.2). */
    readonly fields: readonly HeaderField[];
  }
  | {
    /**
     * The list is longer than `headerListBytesMax`, so its fields were
     * dropped. The tables are in step and the connection is fine: answer this
     * one stream with 431 or reset it (RFC 9113 §10.5.1).
     */
    readonly tooLarge: true;
    /** How long it is, by the accounting of RFC 9113 §6.5.2. */
    readonly listBytes: number;
  };

/** Options of {@linkcode HpackDecoder}. */
interface HpackDecoderOptions {
  /**
   * The largest dynamic table that the peer may use, in bytes: our
   * SETTINGS_HEADER_TABLE_SIZE. 4096 by default, as in RFC 9113 §6.5.2.
   */
  readonly tableSizeMax?: number;
  /** Defaults to {@linkcode HEADER_LIST_BYTES_MAX_DEFAULT}. */
  readonly headerListBytesMax?: number;
}

/**
 * Longer blocks are not looked for among the last ones: a call's head that came
 * before is a few bytes, one for each field.
 */
const REPEATED_BYTES_MAX = 32;

/** Blocks remembered; a link has a request, an answer and trailers. */
const REPEATED_BLOCKS_MAX = 4;

/** A block that did not change the table, and its list. */
interface Repeated {
  readonly bytes: Uint8Array;
  readonly block: HeaderBlock;
}

/**
 * Decodes one direction of a connection. Blocks must come in wire order, each
 * exactly once, even those of streams that are gone, because they change the
 * table.
 */
export class HpackDecoder {
  readonly #table: DynamicTable;
  readonly #listBytesMax: number;
  readonly #listBytesHardMax: number;
  readonly #tableSizeMax: number;
  #scratch: Uint8Array = sharedScratch;
  /** Good for this revision of the table. */
  #repeated: Repeated[] = [];
  #repeatedAreFor = 0;
  /** Nothing was read, so the table still has its initial state. */
  #isFresh: boolean;

  constructor(options: HpackDecoderOptions = {}) {
    this.#tableSizeMax = options.tableSizeMax ?? TABLE_SIZE_DEFAULT;
    this.#listBytesMax = options.headerListBytesMax ??
      HEADER_LIST_BYTES_MAX_DEFAULT;
    this.#listBytesHardMax = this.#listBytesMax * HEADER_LIST_HARD_FACTOR;
    // A larger table is ours to offer and the peer's to take up, by an update.
    this.#table = new DynamicTable(
      Math.min(this.#tableSizeMax, TABLE_SIZE_DEFAULT),
    );
    this.#isFresh = this.#table.sizeMax === TABLE_SIZE_DEFAULT;
  }

  /** Bytes that the dynamic table holds now (§4.1). */
  get tableBytes(): number {
    return this.#table.sizeBytes;
  }

  /**
   * Decodes one complete header block. `block` is only read during the call.
   * The same bytes that mean the same again give the same list, frozen.
   *
   * @throws {HpackError} If the block breaks RFC 7541, or its list is longer
   *   than {@linkcode HEADER_LIST_HARD_FACTOR} times the limit. The decoder is
   *   spent then: connection error COMPRESSION_ERROR (RFC 9113 §4.3).
   */
  decode(block: Uint8Array): HeaderBlock {
    if (this.#isFresh) return this.#decodeFirst(block);
    const { revision } = this.#table;
    if (revision !== this.#repeatedAreFor) this.#repeated = [];
    this.#repeatedAreFor = revision;
    if (block.length > REPEATED_BYTES_MAX) {
      return this.#decodeNew(block);
    }
    for (const { bytes, block: known } of this.#repeated) {
      if (sameBytes(bytes, block)) return known;
    }
    const decoded = this.#decodeNew(block);
    if (!decoded.tooLarge && this.#table.revision === revision) {
      this.#remember(block, decoded);
    }
    return decoded;
  }

  #decodeFirst(bytes: Uint8Array): HeaderBlock {
    this.#isFresh = false;
    const known = firstBlocks.get(bytes);
    if (known !== undefined && known.listBytes <= this.#listBytesMax) {
      for (const entry of known.entries) this.#table.insert(entry);
      return { tooLarge: false, fields: known.fields };
    }
    const block = this.#decodeNew(bytes);
    const isResized = this.#table.sizeMax !== TABLE_SIZE_DEFAULT;
    if (!block.tooLarge && !isResized && known === undefined) {
      firstBlocks.add(bytes, block.fields, this.#table);
    }
    return block;
  }

  #remember(bytes: Uint8Array, block: HeaderBlock): void {
    // A block that resizes the table is no longer the same the second time.
    if (block.tooLarge || ((bytes[0] ?? 0) >>> 5) === 0b001) return;
    Object.freeze(block.fields);
    if (this.#repeated.length === REPEATED_BLOCKS_MAX) this.#repeated.shift();
    this.#repeated.push({ bytes: bytes.slice(), block });
  }

  #decodeNew(block: Uint8Array): HeaderBlock {
    const cursor: Cursor = { block, offset: 0 };
    this.#readSizeUpdates(cursor);
    const fields: HeaderField[] = [];
    let listBytes = 0;
    while (cursor.offset < block.length) {
      const field = this.#readField(cursor);
      listBytes += fieldBytes(field);
      if (listBytes <= this.#listBytesMax) fields.push(field);
      else if (listBytes > this.#listBytesHardMax) throw this.#bomb();
    }
    return listBytes <= this.#listBytesMax
      ? { tooLarge: false, fields }
      : { tooLarge: true, listBytes };
  }

  /** Updates stand in front of the first field and nowhere else (§4.2). */
  #readSizeUpdates(cursor: Cursor): void {
    const { block } = cursor;
    while ((block[cursor.offset] ?? 0) >>> 5 === 0b001) {
      const size = readInteger(cursor, 5);
      if (size > this.#tableSizeMax) {
        throw new HpackError(
          "6.3",
          `Cannot resize the table: the update says ${size} bytes, at most ${this.#tableSizeMax} were announced`,
        );
      }
      this.#table.resize(size);
      this.#repeated = [];
    }
  }

  /** One field representation; the patterns of §6, most frequent first. */
  #readField(cursor: Cursor): HeaderField {
    const first = cursor.block[cursor.offset]!; // The caller looked.
    if (first & 0x80) return this.#lookUp(readInteger(cursor, 7));
    if (first & 0x40) {
      const field = this.#readLiteral(cursor, 6);
      this.#table.insert(field);
      return field;
    }
    if (first & 0x20) {
      throw new HpackError(
        "4.2",
        "Cannot decode a header block: a table size update follows a field, wanted it at the start",
      );
    }
    const field = this.#readLiteral(cursor, 4);
    return first & 0x10 ? { ...field, neverIndex: true } : field;
  }

  #readLiteral(cursor: Cursor, prefixBits: number): HeaderField {
    const index = readInteger(cursor, prefixBits);
    const name = index === 0
      ? this.#readString(cursor)
      : this.#lookUp(index).name;
    return { name, value: this.#readString(cursor) };
  }

  #lookUp(index: number): HeaderField {
    const field = index < DYNAMIC_INDEX_FIRST
      ? STATIC_TABLE[index]
      : this.#table.get(index - DYNAMIC_INDEX_FIRST);
    if (field === undefined || index === 0) {
      throw new HpackError(
        index === 0 ? "6.1" : "2.3.3",
        `Cannot look up a field: the index is ${index}, wanted 1-${
          DYNAMIC_INDEX_FIRST - 1 + this.#table.length
        }`,
      );
    }
    return field;
  }

  #readString(cursor: Cursor): string {
    const { block } = cursor;
    const isHuffman = (block[cursor.offset] ?? 0) >= 0x80;
    const bytes = readInteger(cursor, 7);
    const start = cursor.offset;
    const end = start + bytes;
    if (end > block.length) {
      throw new HpackError(
        "5.2",
        `Cannot read a string: it says ${bytes} bytes, the block has ${
          block.length - start
        } left`,
      );
    }
    // No string can be part of a list that we decode any further (§7.4).
    if (bytes > this.#listBytesHardMax) throw this.#bomb();
    cursor.offset = end;
    if (!isHuffman) return binaryString(block, start, end);
    const scratch = this.#room(decodedBytesMax(bytes));
    return binaryString(scratch, 0, decodeHuffman(block, start, end, scratch));
  }

  /** The shared buffer for Huffman output; an oversized one is not kept. */
  #room(bytes: number): Uint8Array {
    if (bytes <= this.#scratch.length) return this.#scratch;
    const larger = new Uint8Array(2 ** Math.ceil(Math.log2(bytes)));
    if (larger.length <= SCRATCH_BYTES_KEPT) this.#scratch = larger;
    return larger;
  }

  #bomb(): HpackError {
    return new HpackError(
      "7.4",
      "Cannot decode a header block: its list is longer than " +
        `${HEADER_LIST_HARD_FACTOR} times the limit of ${this.#listBytesMax} bytes`,
    );
  }
}

/** How much of a long earlier header one idle connection may keep. */
const SCRATCH_BYTES_KEPT = 8 * 1024;

/** Filled and read within one string, so one for all decoders is enough. */
const sharedScratch = new Uint8Array(256);

// What the first header block of a connection held, for the next connection
// that begins with the same one.
//
// Programs that make a connection for each call, as kube-apiserver does, begin
// all of them alike. The same bytes give a fresh decoder the same list and the
// same table, so the work need not be repeated. Facts about a list, such as
// whether it is valid HTTP, are cached by the list (`ListMemo`).

/** Longer ones are not kept: a call's head is some hundred bytes. */
export const FIRST_BLOCK_BYTES_MAX = 512;

/** Blocks kept: kinds of callers, not callers. The oldest makes way. */
export const FIRST_BLOCKS_MAX = 8;

/** The result of a block for a fresh decoder. */
interface FirstBlock {
  readonly bytes: Uint8Array;
  /** Frozen, so that facts about it can be cached. */
  readonly fields: readonly HeaderField[];
  /** By the accounting of RFC 9113 §6.5.2. */
  readonly listBytes: number;
  /** What the table held then, oldest first. */
  readonly entries: readonly HeaderField[];
}

export class FirstBlocks {
  readonly #blocks: FirstBlock[] = [];
  #oldest = 0;

  get(bytes: Uint8Array): FirstBlock | undefined {
    for (const block of this.#blocks) {
      if (sameBytes(block.bytes, bytes)) return block;
    }
    return undefined;
  }

  /**
   * Remembers `bytes`, unless they are many or hold secrets: those are for no
   * other connection.
   *
   * @param table The dynamic table as `bytes`, its first block, left it.
   */
  add(
    bytes: Uint8Array,
    fields: readonly HeaderField[],
    table: DynamicTable,
  ): void {
    if (
      bytes.length > FIRST_BLOCK_BYTES_MAX || fields.some(isOneConnections)
    ) {
      return;
    }
    // Evicted entries count too, because they would have to be evicted again.
    if (table.revision !== table.length) return;
    const entries = Array.from(
      { length: table.length },
      (_, index) => table.get(table.length - 1 - index)!,
    );
    this.#blocks[this.#oldest] = {
      bytes: bytes.slice(),
      fields: Object.freeze([...fields]),
      listBytes: fields.reduce((sum, field) => sum + fieldBytes(field), 0),
      entries,
    };
    this.#oldest = (this.#oldest + 1) % FIRST_BLOCKS_MAX;
  }
}

/** Shared by all decoders of the process. */
const firstBlocks = new FirstBlocks();
