/**
 * How many descriptors a program of this machine may have, and whether there are
 * any left for a connection: those that are kept for links and administration are
 * not for callers, so a program that is full still says so.
 *
 * @module
 */

import { failed, fine, warned } from "./faults.ts";
import type { Finding } from "./path_walk.ts";
import {
  descriptorsLeft,
  SMALL_LIMIT,
} from "../../../net/libc/free_descriptors.ts";
import { listProcFolder, readProcFile } from "../../../net/libc/proc_files.ts";

/** What one connection takes at most: a caller's socket, and its target's. */
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
