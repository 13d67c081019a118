/**
 * The dynamic table (RFC 7541 §2.3.2 and §4): a first-in, first-out list of
 * fields with a size in bytes.
 *
 * Both ends keep one, so neither end's code may grow a second opinion about
 * sizes and eviction. Finding a field is the encoder's business.
 *
 * @module
 */

import type { HeaderField } from "./header_field.ts";

/** What each entry costs beyond its strings (§4.1). */
const ENTRY_OVERHEAD_BYTES = 32;

/** The initial value of both ends before any SETTINGS (RFC 9113 §6.5.2). */
export const TABLE_SIZE_DEFAULT = 4096;

/** The size of `field` by the rule of §4.1, which RFC 9113 §6.5.2 shares. */
export function fieldBytes(field: HeaderField): number {
  return field.name.length + field.value.length + ENTRY_OVERHEAD_BYTES;
}

export class DynamicTable {
  // A ring whose length is a power of two. Entry number n (counted from the
  // first insertion ever) lies in slot n % length.
  #ring: (HeaderField | undefined)[] = new Array(16).fill(undefined);
  #inserted = 0;
  #evicted = 0;
  #sizeBytes = 0;
  #sizeMax: number;
  readonly #onEvict: ((entry: HeaderField, serial: number) => void) | undefined;

  /**
   * @param sizeMax Bytes, by the rule of §4.1.
   * @param onEvict Called for each entry that leaves, with its serial number.
   */
  constructor(
    sizeMax: number,
    onEvict?: (entry: HeaderField, serial: number) => void,
  ) {
    this.#sizeMax = sizeMax;
    this.#onEvict = onEvict;
  }

  /** How many entries there are. */
  get length(): number {
    return this.#inserted - this.#evicted;
  }

  /** The sum of all {@linkcode fieldBytes}. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** The limit of {@linkcode DynamicTable.sizeBytes}. */
  get sizeMax(): number {
    return this.#sizeMax;
  }

  /** The serial number that the next insertion gets; they only count up. */
  get nextSerial(): number {
    return this.#inserted;
  }

  /** A number that differs whenever the entries differ. */
  get revision(): number {
    // Eviction alone changes them too: a field that is larger than the table.
    return this.#inserted + this.#evicted;
  }

  /** The entry `age` insertions old: 0 is the newest. */
  get(age: number): HeaderField | undefined {
    if (age < 0 || age >= this.length) return undefined;
    return this.#ring[(this.#inserted - 1 - age) & (this.#ring.length - 1)];
  }

  /**
   * Makes room and puts `field` in front (§4.4). A field larger than the whole
   * table empties it and is not kept; that is not an error.
   */
  insert(field: HeaderField): void {
    const bytes = fieldBytes(field);
    this.#evictUntil(this.#sizeMax - bytes);
    if (bytes > this.#sizeMax) return;
    if (this.length === this.#ring.length) this.#grow();
    this.#ring[this.#inserted & (this.#ring.length - 1)] = field;
    this.#inserted++;
    this.#sizeBytes += bytes;
  }

  /** Changes the limit and evicts entries over it (§4.3). */
  resize(sizeMax: number): void {
    this.#sizeMax = sizeMax;
    this.#evictUntil(sizeMax);
  }

  #evictUntil(sizeBytes: number): void {
    while (this.#sizeBytes > sizeBytes && this.length > 0) {
      const serial = this.#evicted++;
      const slot = serial & (this.#ring.length - 1);
      const entry = this.#ring[slot]!;
      this.#ring[slot] = undefined;
      this.#sizeBytes -= fieldBytes(entry);
      this.#onEvict?.(entry, serial);
    }
  }

  /** Bounded by `sizeMax / 32` entries, so this happens a few times at most. */
  #grow(): void {
    const old = this.#ring;
    const ring = new Array<HeaderField | undefined>(old.length * 2);
    ring.fill(undefined);
    for (let serial = this.#evicted; serial < this.#inserted; serial++) {
      ring[serial & (ring.length - 1)] = old[serial & (old.length - 1)];
    }
    this.#ring = ring;
  }
}
