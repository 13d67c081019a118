/**
 * What a process uses, from /proc.
 *
 * @module
 */

/** The unit of CPU time in /proc, fixed on Linux. */
const TICKS_PER_SECOND = 100;
const PAGE_BYTES = 4096;

export interface Usage {
  readonly cpuSeconds: number;
  readonly rssBytes: number;
}

/** CPU time and resident memory of a process, without its children. */
export async function usageOf(pid: number): Promise<Usage> {
  // Deno opens /proc to nobody with less than all permissions; `cat` may.
  const { stdout } = await new Deno.Command("cat", {
    args: [`/proc/${pid}/stat`],
  }).output();
  const stat = new TextDecoder().decode(stdout);
  // The name in parentheses may hold anything, so count behind it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [user, system, pages] = [fields[11], fields[12], fields[21]];
  return {
    cpuSeconds: (Number(user) + Number(system)) / TICKS_PER_SECOND,
    rssBytes: Number(pages) * PAGE_BYTES,
  };
}
