/**
 * A ZIP archive (PKWARE APPNOTE 6.3) that is the same whenever it is made: files
 * below one folder, deflated, without a time.
 *
 * It knows no file over 4 GB and no encryption.
 *
 * @module
 */

import { toBytes } from "@std/streams";
import { crc32 } from "node:zlib";

const LOCAL_FILE = 0x04034b50;
const DIRECTORY_ENTRY = 0x02014b50;
const DIRECTORY_END = 0x06054b50;
/** 2.0: deflate. */
const VERSION_NEEDED = 20;
/** Names are UTF-8. */
const FLAGS = 0x800;
const DEFLATE = 8;
/** 1980-01-01, the first day that can be said. */
const DATE = 0x21;

/** The archive with `files` in `folder`. */
export async function zipOf(
  folder: string,
  files: ReadonlyMap<string, Uint8Array<ArrayBuffer>>,
): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  const directory: Uint8Array<ArrayBuffer>[] = [];
  let at = 0;
  for (const [path, content] of files) {
    const name = new TextEncoder().encode(`${folder}/${path}`);
    const stream = new Blob([content]).stream()
      .pipeThrough(new CompressionStream("deflate-raw"));
    const deflated = new Uint8Array(await toBytes(stream));
    const facts: readonly Field[] = [
      [2, VERSION_NEEDED],
      [2, FLAGS],
      [2, DEFLATE],
      [2, 0],
      [2, DATE],
      [4, crc32(content)],
      [4, deflated.length],
      [4, content.length],
      [2, name.length],
      [2, 0],
    ];
    const head = record([[4, LOCAL_FILE], ...facts]);
    parts.push(head, name, deflated);
    // No comment, first disk, no attributes; then where the file begins.
    const rest: Field[] = [[2, 0], [2, 0], [2, 0], [4, 0], [4, at]];
    directory.push(
      record([[4, DIRECTORY_ENTRY], [2, VERSION_NEEDED], ...facts, ...rest]),
      name,
    );
    at += head.length + name.length + deflated.length;
  }
  const length = directory.reduce((sum, part) => sum + part.length, 0);
  const end = record([
    [4, DIRECTORY_END],
    [2, 0],
    [2, 0],
    [2, files.size],
    [2, files.size],
    [4, length],
    [4, at],
    [2, 0],
  ]);
  return new Uint8Array(
    await new Blob([...parts, ...directory, end]).arrayBuffer(),
  );
}

/** Bytes and value. */
type Field = readonly [2 | 4, number];

/** Little-endian, one after another. */
function record(fields: readonly Field[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(fields.reduce((sum, [size]) => sum + size, 0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const [size, value] of fields) {
    if (size === 2) view.setUint16(at, value, true);
    else view.setUint32(at, value, true);
    at += size;
  }
  return bytes;
}
