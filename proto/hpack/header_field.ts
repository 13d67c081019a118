/**
 * One field of a header list, a cache of facts about whole lists, and the
 * errors of a block.
 *
 * @module
 */

/**
 * A header field as HPACK carries it (RFC 7541 §1.3).
 *
 * Both strings hold bytes as code points 0–255 ("binary strings"): HTTP/2
 * fields are bytes, and most of them are ASCII, for which this is free.
 */
export interface HeaderField {
  /** Lower case on the wire (RFC 9113 §8.2.1); pseudo fields start with `:`. */
  readonly name: string;
  readonly value: string;
  /** Encoded as never-indexed (RFC 7541 §6.2.3): secrets such as tokens. */
  readonly neverIndex?: boolean;
}

// What can go wrong with a header block a peer sent us.
//
// The lowest layer that throws it owns it: `streams` turns it into a connection
// error COMPRESSION_ERROR (RFC 9113 §4.3), for after one bad block the two
// tables may differ and no later block can be trusted.

/** Thrown by the decoder when a block breaks RFC 7541 or a hard limit. */
export class HpackError extends Error {
  override readonly name = "HpackError";

  /**
   * @param section The RFC 7541 section that was broken, such as `"4.2"`.
   * @param message What we were doing and what we saw instead.
   */
  constructor(readonly section: string, message: string) {
    super(`${message} (RFC 7541 §${section})`);
  }
}

// A cache of facts about header lists that repeat.
//
// Calls of one kind have the same head: the decoder then returns the same
// frozen list, and senders keep one. A fact that depends on the list alone need
// not be computed for each call.

/** Lists remembered; a link has a request, an answer and trailers. */
const LISTS_MAX = 4;

/** Limit of a cache for the lists of all connections. */
export const SHARED_LISTS_MAX = 16;

/** Values by list. The lists are compared as objects, not by content. */
export class ListMemo<Value> {
  readonly #lists: (readonly HeaderField[])[] = [];
  readonly #values: Value[] = [];
  #oldest = 0;

  /** @param listsMax Beyond this many lists the oldest is forgotten. */
  constructor(private readonly listsMax: number = LISTS_MAX) {}

  get(list: readonly HeaderField[]): Value | undefined {
    const lists = this.#lists;
    for (let index = 0; index < lists.length; index++) {
      if (lists[index] === list) return this.#values[index];
    }
    return undefined;
  }

  /** Remembers `value`, unless the list may still change. */
  set(list: readonly HeaderField[], value: Value): void {
    if (!Object.isFrozen(list)) return;
    this.#lists[this.#oldest] = list;
    this.#values[this.#oldest] = value;
    this.#oldest = (this.#oldest + 1) % this.listsMax;
  }

  /** Forgets everything. */
  clear(): void {
    this.#lists.length = this.#values.length = this.#oldest = 0;
  }
}
