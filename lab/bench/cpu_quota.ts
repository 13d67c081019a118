/**
 * Holds processes to a share of one core each, by control groups of their own
 * (version 1 or 2 of the kernel's; needs root).
 *
 * @module
 */

/** Short: who is stopped waits for the rest of it, and a latency shows that. */
const PERIOD_US = 20_000;

const V1 = "/sys/fs/cgroup/cpu";
const V2 = "/sys/fs/cgroup";

export class CpuQuotas {
  readonly #folders: string[] = [];

  /** @param share Of one core. @throws There are no control groups, or no right. */
  async hold(pid: number, share: number): Promise<void> {
    const isV1 = await exists(`${V1}/cpu.cfs_quota_us`);
    const folder = `${isV1 ? V1 : V2}/tunnel-bench-${Deno.pid}-${pid}`;
    await Deno.mkdir(folder);
    this.#folders.push(folder);
    const quota = Math.round(PERIOD_US * share);
    if (isV1) {
      await Deno.writeTextFile(`${folder}/cpu.cfs_period_us`, `${PERIOD_US}`);
      await Deno.writeTextFile(`${folder}/cpu.cfs_quota_us`, `${quota}`);
    } else {
      await Deno.writeTextFile(`${folder}/cpu.max`, `${quota} ${PERIOD_US}`);
    }
    await Deno.writeTextFile(`${folder}/cgroup.procs`, `${pid}`);
  }

  /** In how many of the periods in which they ran they were stopped. */
  async stopped(): Promise<{ readonly periods: number; readonly of: number }> {
    let [periods, of] = [0, 0];
    for (const folder of this.#folders) {
      const text = await Deno.readTextFile(`${folder}/cpu.stat`);
      const read = (name: string) =>
        Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
      periods += read("nr_throttled");
      of += read("nr_periods");
    }
    return { periods, of };
  }

  /** The processes must have ended. */
  async remove(): Promise<void> {
    for (const folder of this.#folders.splice(0)) {
      await Deno.remove(folder).catch(() => {});
    }
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await Deno.stat(path);
    return true;
  } catch {
    return false;
  }
}
