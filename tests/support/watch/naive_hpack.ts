/**
 * HPACK written to be read: no tables, no scratch buffers, no cleverness.
 *
 * The oracle for `proto/hpack` in property tests and fuzzers. It decodes bit
 * strings by looking them up, keeps the dynamic table as an array with the
 * newest entry first, and shares only the literal tables of the RFC.
 *
 * @module
 */

import type { HeaderField } from "../../../proto/hpack/header_field.ts";
import { CODE_BITS, HUFFMAN_CODES } from "../../../proto/hpack/huffman.ts";
import { STATIC_TABLE } from "../../../proto/hpack/static_table.ts";

/** Thrown for every block that breaks the RFC. */
export class NaiveHpackError extends Error {
  override readonly name = "NaiveHpackError";
}

const SYMBOLS: ReadonlyMap<string, number> = new Map(
  Array.from(HUFFMAN_CODES, (code, symbol) => [
    code.toString(2).padStart(CODE_BITS[symbol]!, "0"),
    symbol,
  ]),
);

/** The text, or `undefined` if the padding is wrong or EOS occurs (§5.2). */
export function naiveHuffmanDecode(coded: Uint8Array): string | undefined {
  let text = "";
  let bits = "";
  for (const byte of coded) {
    for (const bit of byte.toString(2).padStart(8, "0")) {
      bits += bit;
      const symbol = SYMBOLS.get(bits);
      if (symbol === undefined) continue;
      text += String.fromCharCode(symbol);
      bits = "";
    }
  }
  return /^1{0,7}$/.test(bits) ? text : undefined;
}

/** Decodes blocks one after the other; `table` is the dynamic table. */
export class NaiveHpackDecoder {
  table: HeaderField[] = [];
  tableSize: number;

  constructor(readonly tableSizeMax = 4096) {
    this.tableSize = tableSizeMax;
  }

  get tableBytes(): number {
    return this.table.reduce((sum, field) => sum + bytesOf(field), 0);
  }

  decode(block: Uint8Array): HeaderField[] {
    const fields: HeaderField[] = [];
    let rest = [...block];
    while (rest.length > 0) {
      const bits = rest[0]!.toString(2).padStart(8, "0");
      if (bits.startsWith("1")) {
        fields.push(this.#lookUp(integer(7)));
      } else if (bits.startsWith("01")) {
        fields.push(this.#insert(literal(6, this)));
      } else if (bits.startsWith("001")) {
        if (fields.length > 0) throw new NaiveHpackError("late size update");
        this.#resize(integer(5));
      } else if (bits.startsWith("0001")) {
        fields.push({ ...literal(4, this), neverIndex: true });
      } else {
        fields.push(literal(4, this));
      }
    }
    return fields;

    function byte(): number {
      const first = rest.shift();
      if (first === undefined) throw new NaiveHpackError("truncated");
      return first;
    }

    function integer(prefixBits: number): number {
      const mask = 2 ** prefixBits - 1;
      let value = byte() & mask;
      if (value < mask) return value;
      for (let shift = 0; shift < 35; shift += 7) {
        const next = byte();
        value += (next % 128) * 2 ** shift;
        if (next < 128 && value < 2 ** 32) return value;
        if (next < 128) break;
      }
      throw new NaiveHpackError("long integer");
    }

    function string(): string {
      const isHuffman = (rest[0] ?? 0) >= 128;
      const length = integer(7);
      if (length > rest.length) throw new NaiveHpackError("truncated");
      const bytes = rest.slice(0, length);
      rest = rest.slice(length);
      const text = isHuffman
        ? naiveHuffmanDecode(Uint8Array.from(bytes))
        : bytes.map((code) => String.fromCharCode(code)).join("");
      if (text === undefined) throw new NaiveHpackError("huffman");
      return text;
    }

    function literal(prefixBits: number, self: NaiveHpackDecoder): HeaderField {
      const index = integer(prefixBits);
      const name = index === 0 ? string() : self.#lookUp(index).name;
      return { name, value: string() };
    }
  }

  #lookUp(index: number): HeaderField {
    const field = [...STATIC_TABLE, ...this.table][index];
    if (index === 0 || field === undefined) throw new NaiveHpackError("index");
    return field;
  }

  #insert(field: HeaderField): HeaderField {
    this.table.unshift(field);
    this.#evict();
    return field;
  }

  #resize(size: number): void {
    if (size > this.tableSizeMax) throw new NaiveHpackError("table size");
    this.tableSize = size;
    this.#evict();
  }

  #evict(): void {
    while (this.tableBytes > this.tableSize) this.table.pop();
  }
}

function bytesOf(field: HeaderField): number {
  return field.name.length + field.value.length + 32;
}
