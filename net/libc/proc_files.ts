/**
 * Files below `/proc`, read by the C library: the platform refuses them to
 * programs without all permissions. A file that is gone, hidden or another
 * user's is `undefined`.
 *
 * @module
 */

import { cText, openLibc } from "./libc.ts";

const CLOEXEC = 0x80000;

/** A table of sockets has 150 bytes for each: those of a busy server fit. */
const FILE_BYTES_MAX = 8 * 1024 * 1024;
const READ_BYTES = 64 * 1024;
const LINK_BYTES_MAX = 4_096;

/** `d_name` of `struct dirent`, on 64 bits: behind ino, off, reclen and type. */
const NAME_OFFSET = 19;

/** System call by number. */
const FSTAT = Deno.build.arch === "x86_64" ? 5n : 80n;

/** `struct stat` in words, on 64 bits, and where the size begins. */
const STAT_WORDS = 36;
const SIZE_AT = 12;

/** The text of a file. @param readBytes At a time; all of a short one. */
export function readProcFile(
  path: string,
  readBytes = READ_BYTES,
): string | undefined {
  const library = openLibc();
  const descriptor = library?.open(cText(path), CLOEXEC) ?? -1;
  if (library === undefined || descriptor < 0) return undefined;
  const decoder = new TextDecoder();
  let text = "";
  try {
    const into = new Uint8Array(readBytes);
    for (let length = 0; length < FILE_BYTES_MAX;) {
      const count = Number(
        library.read(descriptor, into, BigInt(into.length)),
      );
      if (count <= 0) break;
      text += decoder.decode(into.subarray(0, count), { stream: true });
      length += count;
    }
  } finally {
    library.close(descriptor);
  }
  return text;
}

/** The target of a symbolic link. */
export function readProcLink(path: string): string | undefined {
  const into = new Uint8Array(LINK_BYTES_MAX);
  const count = Number(
    openLibc()?.readlink(cText(path), into, BigInt(into.length)) ?? -1n,
  );
  return count < 0
    ? undefined
    : new TextDecoder().decode(into.subarray(0, count));
}

/** The names in a folder. */
export function listProcFolder(path: string): string[] | undefined {
  const library = openLibc();
  const folder = library?.opendir(cText(path)) ?? null;
  if (library === undefined || folder === null) return undefined;
  const names: string[] = [];
  for (;;) {
    const entry = library.readdir(folder);
    if (entry === null) break;
    const name = new Deno.UnsafePointerView(entry).getCString(NAME_OFFSET);
    if (name !== "." && name !== "..") names.push(name);
  }
  library.closedir(folder);
  return names;
}

/**
 * How many entries a folder has. As the kernel has counted them where it does, as
 * Linux 6.2 and later do descriptors: 10,000 take 20 ms to list.
 */
export function countProcFolder(path: string): number | undefined {
  const library = openLibc();
  const folder = library?.open(cText(path), CLOEXEC) ?? -1;
  if (library === undefined || folder < 0) return undefined;
  const stat = new Uint32Array(STAT_WORDS);
  library.fstat(FSTAT, folder, new Uint8Array(stat.buffer));
  library.close(folder);
  return stat[SIZE_AT]! || listProcFolder(path)?.length;
}
