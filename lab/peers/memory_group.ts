/**
 * What the kernel counts of the memory of a control group, of either version.
 *
 * @module
 */

/** See the module description. */
export interface GroupMemory {
  readonly limitMegabytes: number;
  readonly peakMegabytes: number;
  /** Processes that the kernel has ended, because there was no more. */
  readonly kills: number;
}

/** Where controllers of the first version are. */
const FIRST = "/sys/fs/cgroup/memory";
const SECOND = "/sys/fs/cgroup";

/** @param path Of the group, below the controller's folder. */
export async function groupMemory(path: string): Promise<GroupMemory> {
  const isFirst = await Deno.stat(FIRST).then(() => true, () => false);
  const read = (name: string) =>
    Deno.readTextFile(`${isFirst ? FIRST : SECOND}/${path}/memory.${name}`);
  const [limit, peak, events] = isFirst
    ? ["limit_in_bytes", "max_usage_in_bytes", "oom_control"]
    : ["max", "peak", "events"];
  const megabytes = async (name: string) =>
    Math.round(Number(await read(name)) / 1e6);
  const [, kills] = /^oom_kill (\d+)$/m.exec(await read(events)) ?? [];
  return {
    limitMegabytes: await megabytes(limit),
    peakMegabytes: await megabytes(peak),
    kills: Number(kills),
  };
}
