/**
 * A tar archive as it is written: POSIX ustar, regular files only.
 *
 * @module
 */

const BLOCK_BYTES = 512;
const NAME_BYTES_MAX = 100;
const ENCODER = new TextEncoder();

/** One file. */
export interface TarFile {
  /** In ASCII, with slashes; at most 100 bytes. */
  readonly name: string;
  readonly content: Uint8Array<ArrayBuffer>;
}

/** The bytes of an archive, file by file. */
export async function* tarBytes(
  files: AsyncIterable<TarFile>,
  modifiedMs: number,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for await (const { name, content } of files) {
    yield header(name, content.length, modifiedMs);
    yield content;
    const rest = content.length % BLOCK_BYTES;
    if (rest > 0) yield new Uint8Array(BLOCK_BYTES - rest);
  }
  yield new Uint8Array(2 * BLOCK_BYTES);
}

function header(
  name: string,
  bytes: number,
  modifiedMs: number,
): Uint8Array<ArrayBuffer> {
  const isPlain = /^[\w./-]+$/.test(name) && name.length <= NAME_BYTES_MAX;
  if (!isPlain) throw new TypeError(`Cannot call a file in an archive ${name}`);
  const block = new Uint8Array(BLOCK_BYTES);
  const put = (at: number, text: string) => block.set(ENCODER.encode(text), at);
  const octal = (value: number, digits: number) =>
    value.toString(8).padStart(digits, "0");
  put(0, name);
  put(100, octal(0o600, 7));
  put(108, octal(0, 7));
  put(116, octal(0, 7));
  put(124, octal(bytes, 11));
  put(136, octal(Math.floor(modifiedMs / 1_000), 11));
  put(148, " ".repeat(8));
  put(156, "0");
  put(257, "ustar");
  put(263, "00");
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(148, `${octal(sum, 6)}\0 `);
  return block;
}
