/**
 * What encoders have written since they were made, as far as others have begun
 * in the same way.
 *
 * On a connection that is made for one call the first lists are the last ones,
 * and the same on all such connections: a head and trailers. An encoder that has
 * written what another has would go on as that one did, so while it does, its
 * bytes are those, and it needs neither table nor index.
 *
 * @module
 */

import type { HeaderField } from "./header_field.ts";
import { isOneConnections } from "./indexing_rule.ts";
import { ListMemo } from "./list_memo.ts";

/** Lists that are followed: a head, trailers, and those of one call more. */
export const HISTORY_LISTS_MAX = 4;

/** What comes next: the block of one list, and where the encoder is then. */
export interface HistoryStep {
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
