/**
 * Lets go of the pages of files that this process runs from and reads constants
 * of: the program's and its libraries'. A start touches some 45 MiB of them, a
 * process with little to do needs a few. They stay in the system's cache as long
 * as it has room, and come back, some at once, when they are touched.
 *
 * @module
 */

import { openLibc } from "./libc.ts";
import { readProcFile } from "./proc_files.ts";

const MADV_DONTNEED = 4;

/** A smaller mapping is not worth a system call. */
const RESIDENT_KIB_MIN = 256;

/** Mapped from a file, and not writable. */
const MAPPING = /^([0-9a-f]+)-([0-9a-f]+) r-[x-]p \S+ \S+ [1-9]\d* +\//;

/** Seven numbers. */
const STATM_BYTES = 256;

/** Resident bytes of this process, without the pages of files. */
export function ownBytes(): number {
  const { rss } = Deno.memoryUsage();
  const [, resident, shared] = readProcFile("/proc/self/statm", STATM_BYTES)
    ?.split(" ").map(Number) ?? [];
  if (resident === undefined || shared === undefined) return rss;
  return rss * (1 - shared / resident);
}

/** @returns Bytes of the released pages that were resident. */
export function releaseProgramPages(): number {
  const library = openLibc();
  if (library === undefined) return 0;
  let released = 0;
  for (const { start, end, residentKib } of cleanMappings()) {
    const at = Deno.UnsafePointer.create(start);
    if (library.madvise(at, end - start, MADV_DONTNEED) !== 0) continue;
    released += residentKib * 1024;
  }
  return released;
}

interface Mapping {
  readonly start: bigint;
  readonly end: bigint;
  readonly residentKib: number;
}

/**
 * Only pages that never changed: a changed page (relocations, before its
 * mapping became constant) would come back with the file's content.
 */
function* cleanMappings(): Iterable<Mapping> {
  const text = readProcFile("/proc/self/smaps") ?? "";
  const lines = text.split("\n");
  for (let index = 0; index < lines.length; index++) {
    const mapping = MAPPING.exec(lines[index]!);
    if (mapping === null) continue;
    const sizes = new Map<string, number>();
    while (++index < lines.length) {
      const size = /^(\w+): +(\d+) kB$/.exec(lines[index]!);
      if (size !== null) sizes.set(size[1]!, Number(size[2]));
      else if (lines[index]!.startsWith("VmFlags")) break;
    }
    const residentKib = sizes.get("Rss") ?? 0;
    if (sizes.get("Anonymous") !== 0 || residentKib < RESIDENT_KIB_MIN) {
      continue;
    }
    const [start, end] = [mapping[1]!, mapping[2]!].map((hex) =>
      BigInt(`0x${hex}`)
    );
    yield { start: start!, end: end!, residentKib };
  }
}
