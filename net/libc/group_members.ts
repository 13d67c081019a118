/**
 * Which users are in a group, by the machine's user database: its files, LDAP, or
 * whatever the C library asks.
 *
 * @module
 */

import { openLibc } from "./libc.ts";

/** Where `struct passwd` has the name, and the user's own group. */
const NAME_AT = 0;
const GROUP_AT = 20;

/** More than the kernel gives a process by default. */
const GROUPS_MAX = 65_536;

/** How long what the database said is taken for true: it may ask a network. */
const FRESH_MS = 2_000;

const lately = new Map<number, readonly [groups: Set<number>, atMs: number]>();

/** Whether `uid` is in `gid`; no, where nobody can say. */
export function isInGroup(uid: number, gid: number): boolean {
  const [groups, atMs] = lately.get(uid) ?? [NONE, -Infinity];
  const nowMs = performance.now();
  if (nowMs - atMs < FRESH_MS) return groups.has(gid);
  const now = groupsOf(uid);
  lately.set(uid, [now, nowMs]);
  return now.has(gid);
}

const NONE: Set<number> = new Set();

function groupsOf(uid: number): Set<number> {
  const library = openLibc();
  const entry = library?.getpwuid(uid) ?? null;
  if (library === undefined || entry === null) return NONE;
  const view = new Deno.UnsafePointerView(entry);
  const own = view.getUint32(GROUP_AT);
  const groups = new Uint32Array(GROUPS_MAX);
  const count = new Int32Array([GROUPS_MAX]);
  const [list, length] = [groups, count].map(({ buffer }) =>
    new Uint8Array(buffer)
  );
  library.getgrouplist(view.getPointer(NAME_AT), own, list!, length!);
  return new Set(groups.subarray(0, Math.max(0, count[0]!)));
}
