/**
 * What the first header block of a connection held, for the next connection
 * that begins with the same one.
 *
 * Programs that make a connection for each call, as kube-apiserver does, begin
 * all of them alike. A decoder that has read nothing yet gets from the same
 * bytes the same list and the same table, so that need not be worked out again;
 * and what follows from a list, such as whether it is sound HTTP, is remembered
 * by the list (`ListMemo`).
 *
 * @module
 */

import { sameBytes } from "../bytes/same_bytes.ts";
import { type DynamicTable, fieldBytes } from "./dynamic_table.ts";
import type { HeaderField } from "./header_field.ts";
import { isOneConnections } from "./indexing_rule.ts";

/** Longer ones are not kept: a call's head is some hundred bytes. */
export const FIRST_BLOCK_BYTES_MAX = 512;

/** Blocks kept: kinds of callers, not callers. The oldest makes way. */
export const FIRST_BLOCKS_MAX = 8;

/** What a block meant to a decoder that had read nothing. */
export interface FirstBlock {
  readonly bytes: Uint8Array;
  /** Frozen, so that what follows from it may be remembered. */
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
    // What was evicted counts too, and would have to be evicted again.
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
