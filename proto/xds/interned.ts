/**
 * One value for equal bytes: what a thousand clients repeat is read once.
 *
 * Layer: xDS. A value is known for as long as it is in use elsewhere; the bytes
 * that it was read from are kept as long, so that finding it again costs a hash
 * and a comparison and makes nothing.
 *
 * Attack in mind: bytes made to have one hash would make one long row to be
 * compared with. Beyond {@linkcode ROW_MAX} values of one hash more are read and
 * not kept.
 *
 * @module
 */

/** Values of one hash that are kept. */
export const ROW_MAX = 4;

interface Entry<T extends object> {
  readonly bytes: Uint8Array;
  readonly value: WeakRef<T>;
}

export class Interned<T extends object> {
  readonly #rows = new Map<number, Entry<T>[]>();
  /** Clients that repeat the same do it one after the other. */
  #last: Entry<T> | undefined;
  readonly #collected = new FinalizationRegistry<number>((hash) =>
    this.#sweep(hash)
  );

  /** Different bytes that are known. */
  get size(): number {
    let size = 0;
    for (const row of this.#rows.values()) size += row.length;
    return size;
  }

  /**
   * The value of `bytes`, made by `read` unless it is known.
   *
   * @param bytes Only looked at during the call.
   * @param read Gets bytes that never change. What it throws is passed on.
   */
  valueOf(bytes: Uint8Array, read: (bytes: Uint8Array) => T): T {
    const view = new DataView(
      bytes.buffer,
      bytes.byteOffset,
      bytes.byteLength,
    );
    const last = this.#last;
    if (last !== undefined && isEqual(view, last.bytes)) {
      const there = last.value.deref();
      if (there !== undefined) return there;
    }
    const hash = hashOf(view);
    const row = this.#rows.get(hash);
    if (row !== undefined) {
      for (const entry of row) {
        if (!isEqual(view, entry.bytes)) continue;
        const there = entry.value.deref();
        if (there === undefined) continue;
        this.#last = entry;
        return there;
      }
      if (row.length >= ROW_MAX) this.#sweep(hash);
    }
    // Not `slice`: of a Buffer that would be the same bytes again.
    return this.#add(hash, new Uint8Array(bytes), read);
  }

  #add(
    hash: number,
    bytes: Uint8Array,
    read: (bytes: Uint8Array) => T,
  ): T {
    const value = read(bytes);
    const row = this.#rows.get(hash) ?? [];
    if (row.length >= ROW_MAX) return value;
    this.#last = { bytes, value: new WeakRef(value) };
    row.push(this.#last);
    this.#rows.set(hash, row);
    this.#collected.register(value, hash);
    return value;
  }

  /** Forgets values that are not in use any more. */
  #sweep(hash: number): void {
    const row = this.#rows.get(hash);
    const left = row?.filter(({ value }) => value.deref() !== undefined);
    if (this.#last?.value.deref() === undefined) this.#last = undefined;
    if (left === undefined || left.length === 0) this.#rows.delete(hash);
    else this.#rows.set(hash, left);
  }
}

/** FNV-1a over words of 32 bits; the same on every machine. */
function hashOf(view: DataView): number {
  const words = view.byteLength & ~3;
  let hash = 0x811c9dc5 ^ view.byteLength;
  let at = 0;
  for (; at < words; at += 4) {
    hash = Math.imul(hash ^ view.getUint32(at), 0x01000193);
    hash ^= hash >>> 15;
  }
  for (; at < view.byteLength; at++) {
    hash = Math.imul(hash ^ view.getUint8(at), 0x01000193);
  }
  return hash;
}

function isEqual(view: DataView, known: Uint8Array): boolean {
  if (view.byteLength !== known.length) return false;
  const other = new DataView(known.buffer, known.byteOffset, known.length);
  const words = known.length & ~3;
  let at = 0;
  for (; at < words; at += 4) {
    if (view.getUint32(at) !== other.getUint32(at)) return false;
  }
  for (; at < known.length; at++) {
    if (view.getUint8(at) !== other.getUint8(at)) return false;
  }
  return true;
}
