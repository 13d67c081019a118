/**
 * The process at the other end of a unix socket (SO_PEERCRED of unix(7)), and
 * whether its user is in a group.
 *
 * @module
 */

import { type LibC, openLibc } from "./libc.ts";
import { socketWords, SOL_SOCKET } from "./socket_option.ts";

/** `struct ucred`: process, user, group. */
const SO_PEERCRED = 17;

/**
 * The process that made a unix connection, as the kernel saw it then (unix(7)).
 */
export interface PeerCredentials {
  /**
   * The process; it may have passed the connection on, or be gone. 0: it is none
   * that this process can see, as in another container.
   */
  readonly pid: number;
  readonly uid: number;
}

/** @returns `undefined` when it is unknown. */
export function peerCredentials(
  library: LibC,
  descriptor: number,
): PeerCredentials | undefined {
  const [pid, uid] =
    socketWords(library, descriptor, SOL_SOCKET, SO_PEERCRED, 3) ?? [];
  return pid === undefined ? undefined : { pid, uid: uid! >>> 0 };
}

/** Offsets in `struct passwd` of the name and of the user's own group. */
const NAME_AT = 0;
const GROUP_AT = 20;

/** More than the kernel gives a process by default. */
const GROUPS_MAX = 65_536;

/** How long what the database said is taken for true: it may ask a network. */
const FRESH_MS = 2_000;

const lately = new Map<number, readonly [groups: Set<number>, atMs: number]>();

/** Whether `uid` is in `gid`; false when that is unknown. */
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
