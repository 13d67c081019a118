/**
 * How much memory the control group of this process may use (cgroups(7)): a
 * Pod's limit, or `MemoryMax=` of a unit. V8 does not ask, and lets garbage grow
 * by what the machine has.
 *
 * @module
 */

import { readProcFile } from "./proc_files.ts";

/** By the line of `/proc/self/cgroup`: where its files are, and the limit's. */
const VERSIONS: readonly {
  readonly line: RegExp;
  readonly mount: string;
  readonly file: string;
}[] = [
  { line: /^0::(.*)$/m, mount: "/sys/fs/cgroup", file: "memory.max" },
  {
    line: /^\d+:(?:[^:\n]*,)?memory(?:,[^:\n]*)?:(.*)$/m,
    mount: "/sys/fs/cgroup/memory",
    file: "memory.limit_in_bytes",
  },
];

/**
 * The lowest limit of the group and of those above it; infinite without one. In
 * a container the path is often the host's: its own group is at the top then.
 *
 * @param read The text of a file; for tests.
 */
export function memoryLimitBytes(
  read: (path: string) => string | undefined = readProcFile,
): number {
  const groups = read("/proc/self/cgroup") ?? "";
  let lowest = Infinity;
  for (const { line, mount, file } of VERSIONS) {
    let path = line.exec(groups)?.[1];
    while (path?.startsWith("/") === true) {
      const folder = path === "/" ? mount : mount + path;
      const text = read(`${folder}/${file}`)?.trim() ?? "";
      // Or `max`.
      if (/^\d+$/.test(text)) lowest = Math.min(lowest, Number(text));
      if (path === "/") break;
      path = path.slice(0, path.lastIndexOf("/")) || "/";
    }
  }
  return lowest;
}
