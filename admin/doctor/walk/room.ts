/**
 * Whether a program of ours has room: on the disk where it keeps its state (the
 * file system is asked, and nothing is written to find out), and of
 * descriptors. Descriptors reserved for links and administration are not for
 * callers, so a full program can still report that.
 *
 * @module
 */

import { statfs } from "node:fs/promises";
import { listProcFolder, readProcFile } from "../../../net/libc/proc_files.ts";
import { failed, type Finding, fine, warned } from "./path_walk.ts";
import { descriptorsLeft, SMALL_LIMIT } from "../../../net/libc/descriptors.ts";

/** Less room is a warning: audit logs and certificates need some. */
const FREE_BYTES_LOW = 64 * 1024 * 1024;
/** With less room no more writes are possible. */
const FREE_BYTES_MIN = 256 * 1024;

/**
 * Room and mode of the file system below a directory.
 *
 * @param root A directory of our program, whose content must be renewed.
 * @param flag The flag that names it.
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

/** The most that one connection takes: a caller's socket, and its target's. */
const OF_A_CONNECTION = 2;

/** @param pid Absent: none runs, and it would be started from here. */
export function lookAtDescriptors(
  program: "agent" | "server",
  pid: number | undefined,
): Finding | undefined {
  const of = pid ?? "self";
  const text = readProcFile(`/proc/${of}/limits`) ?? "";
  const limit = Number(/^Max open files\s+(\d+)/m.exec(text)?.[1] ?? NaN);
  if (Number.isNaN(limit)) return undefined;
  // Another user's: how many it has is not ours to know.
  const used = listProcFolder(`/proc/${of}/fd`)?.length ?? 0;
  const kept = descriptorsLeft("caller", limit);
  const remedy = 'raise "ulimit -n" (LimitNOFILE in systemd), and restart';
  if (pid !== undefined && used + OF_A_CONNECTION > limit - kept) {
    return failed(
      "TUN513",
      `process ${pid} has ${used} of ${limit} descriptors open, and keeps ` +
        `${kept} for links and administration: none is left for connections`,
      remedy,
    );
  }
  if (limit < SMALL_LIMIT) {
    const who = program === "agent" ? "an agent" : "a server";
    return warned(
      "TUN513",
      `${pid === undefined ? `${who} started here` : `process ${pid}`} may ` +
        `have only ${limit} descriptors, one for each connection`,
      remedy,
    );
  }
  return fine(
    pid === undefined
      ? `${limit} descriptors may be open`
      : `${used} of ${limit} descriptors are open`,
  );
}
