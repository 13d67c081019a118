/**
 * Whether a process is of this container, or of this machine, as this one is.
 *
 * A name of the abstract namespace belongs to a network, and containers may have
 * the machine's: root there is no root here, and looks the same to SO_PEERCRED
 * (CVE-2020-15257 of containerd). What tells them apart without any right is how
 * many process namespaces deep they are. Read by the C library, as the platform
 * gives a packaged program nothing of `/proc`.
 *
 * @module
 */

import { openLibc } from "../libc/libc.ts";

const SYMBOLS = {
  open: { parameters: ["buffer", "i32"], result: "i32" },
  read: { parameters: ["i32", "buffer", "usize"], result: "i64" },
} as const;

type Calls = Deno.DynamicLibrary<typeof SYMBOLS>["symbols"];

const CLOEXEC = 0x80000;

/** One with more than a thousand groups is taken for a stranger. */
const STATUS_BYTES_MAX = 16 * 1024;

let calls: Calls | undefined;

/** @returns False where it is not known: it may be gone, or hidden. */
export function isOfOurContainer(pid: number): boolean {
  // None that can be seen from here.
  if (pid <= 0) return false;
  const depth = depthOf(`${pid}`);
  return depth !== undefined && depth === depthOf("self");
}

/** In how many process namespaces it has an id, as far as can be seen here. */
function depthOf(process: string): number | undefined {
  const ids = /^NSpid:(.*)$/m.exec(statusOf(process) ?? "")?.[1];
  return ids?.trim().split(/\s+/).length;
}

function statusOf(process: string): string | undefined {
  const library = openLibc();
  if (library === undefined) return undefined;
  try {
    calls ??= Deno.dlopen("libc.so.6", SYMBOLS).symbols;
  } catch {
    return undefined; // Another C library.
  }
  const path = new TextEncoder().encode(`/proc/${process}/status\0`);
  const descriptor = calls.open(path, CLOEXEC);
  if (descriptor < 0) return undefined;
  const buffer = new Uint8Array(STATUS_BYTES_MAX);
  const count = calls.read(descriptor, buffer, BigInt(buffer.length));
  library.close(descriptor);
  return new TextDecoder().decode(
    buffer.subarray(0, Math.max(Number(count), 0)),
  );
}
