/**
 * Finds one file in a tar archive (POSIX ustar, which npm writes).
 *
 * @module
 */

const BLOCK_BYTES = 512;
const ASCII = new TextDecoder("latin1");

/**
 * The content of the file called `name`, as a view.
 *
 * @throws {Error} When the archive has no such file or ends early.
 */
export function tarEntry(
  archive: Uint8Array<ArrayBuffer>,
  name: string,
): Uint8Array<ArrayBuffer> {
  let at = 0;
  while (at + BLOCK_BYTES <= archive.length) {
    const header = archive.subarray(at, at + BLOCK_BYTES);
    const entry = field(header, 0, 100);
    if (entry === "") break;
    const size = parseInt(field(header, 124, 12), 8);
    const begin = at + BLOCK_BYTES;
    if (entry === name && begin + size <= archive.length) {
      return archive.subarray(begin, begin + size);
    }
    at = begin + Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
  }
  throw new Error(`Cannot find ${name} in the archive`);
}

function field(header: Uint8Array, begin: number, length: number): string {
  const text = ASCII.decode(header.subarray(begin, begin + length));
  return text.split("\0")[0]!.trim();
}
