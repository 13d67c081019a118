/**
 * Structures for the C library that hold pointers, as words of 32 bits.
 *
 * Linux means x86-64 or arm64 for this platform: pointers of 64 bits, the low
 * word first. The caller must keep memory that is pointed to.
 *
 * @module
 */

/** Where `memory` is. It stays there as long as there is a reference to it. */
export function pointerTo(
  memory: Uint8Array<ArrayBuffer> | Uint32Array<ArrayBuffer>,
): number {
  // Addresses have 48 bits, so a number holds them.
  return Number(Deno.UnsafePointer.value(Deno.UnsafePointer.of(memory)));
}

/** Writes a pointer, or any number of 64 bits, at a word. */
export function pointTo(words: Uint32Array, at: number, pointer: number): void {
  words[at] = pointer; // Modulo 2^32.
  words[at + 1] = pointer / 2 ** 32;
}
