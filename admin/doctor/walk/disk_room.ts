/**
 * Whether a program of ours can write where it keeps its state: the file system
 * is asked, and nothing is written to find out.
 *
 * @module
 */

import { statfs } from "node:fs/promises";
import { readProcFile } from "../../../net/libc/proc_files.ts";
import { failed, warned } from "./faults.ts";
import type { Finding } from "./path_walk.ts";

/** Less room is a warning: audit logs and certificates need some. */
const FREE_BYTES_LOW = 64 * 1024 * 1024;
/** With less nothing more can be written. */
const FREE_BYTES_MIN = 256 * 1024;

/**
 * Room and mode of the file system below a directory.
 *
 * @param root Of a program of ours: what it keeps there is to be renewed.
 * @param flag Which names it.
 * @returns `undefined`: it can be written.
 */
export async function lookAtRoom(
  root: string,
  flag = "--state-dir",
): Promise<Finding | undefined> {
  if (isReadOnly(root, readProcFile("/proc/self/mountinfo") ?? "")) {
    return failed(
      "TUN905",
      `the file system of ${root} is mounted read-only`,
      `mount it with "rw" (dmesg says if an error of the disk made it so), or ` +
        `name another ${flag}`,
    );
  }
  const { bavail, bsize, files, ffree } = await statfs(root);
  const free = bavail * bsize;
  if (free < FREE_BYTES_MIN || (files > 0 && ffree === 0)) {
    return failed(
      "TUN905",
      `the disk of ${root} is full (${Math.floor(free / 1024)} KiB free, ` +
        `${ffree} inodes)`,
      `make room (du -xhd1 / | sort -h), or move the directory`,
    );
  }
  if (free < FREE_BYTES_LOW) {
    return warned(
      "TUN905",
      `the disk of ${root} is nearly full ` +
        `(${Math.floor(free / 1024 / 1024)} MiB free)`,
      "make room before certificates and logs cannot be written",
    );
  }
  return undefined;
}

/** @param table `/proc/self/mountinfo`: the last mount of the longest prefix counts. */
export function isReadOnly(path: string, table: string): boolean {
  let longest = "";
  let options = "";
  for (const line of table.split("\n")) {
    const [, , , , place, flags] = line.split(" ");
    if (place === undefined || flags === undefined) continue;
    const inside = place === "/" || path === place ||
      path.startsWith(`${place}/`);
    if (!inside || place.length < longest.length) continue;
    longest = place;
    options = flags;
  }
  return options.split(",").includes("ro");
}
