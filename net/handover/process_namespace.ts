/**
 * Whether a process is of this container, or of this machine, as this one is.
 *
 * A name of the abstract namespace belongs to a network, and containers may have
 * the machine's: root there is no root here, and looks the same to SO_PEERCRED
 * (CVE-2020-15257 of containerd). What tells them apart without any right is how
 * many process namespaces deep they are.
 *
 * @module
 */

import { readProcFile } from "../libc/proc_files.ts";

/** @returns False where it is not known: it may be gone, or hidden. */
export function isOfOurContainer(pid: number): boolean {
  // None that can be seen from here.
  if (pid <= 0) return false;
  const depth = depthOf(`${pid}`);
  return depth !== undefined && depth === depthOf("self");
}

/** In how many process namespaces it has an id, as far as can be seen here. */
function depthOf(process: string): number | undefined {
  const ids = /^NSpid:(.*)$/m.exec(
    readProcFile(`/proc/${process}/status`) ?? "",
  )?.[1];
  return ids?.trim().split(/\s+/).length;
}
