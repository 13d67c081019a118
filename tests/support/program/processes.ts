/**
 * What a process uses and holds, from `/proc`. The platform opens it only to
 * programs that may do everything; `cat` and `ls` may, too.
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

/** What a process holds, as the kernel counts it. */
export interface Holding {
  readonly memoryKib: number;
  readonly descriptors: number;
}

/** What the process `pid` holds now. */
export function holdingOf(pid: number): Holding {
  const status = readProcFile(`/proc/${pid}/status`);
  return {
    memoryKib: Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? NaN),
    descriptors: listProcFolder(`/proc/${pid}/fd`).length,
  };
}

/** The processes that `pid` has started. */
export function childrenOf(pid: number): number[] {
  const words = readProcFile(`/proc/${pid}/task/${pid}/children`).split(" ");
  return words.filter((word) => word.trim() !== "").map(Number);
}

/** The text of one file. */
export function readProcFile(path: string): string {
  return outputOf("cat", path);
}

/** The names in one folder. */
export function listProcFolder(path: string): string[] {
  return outputOf("ls", path).split("\n").filter((name) => name !== "");
}

function outputOf(command: string, path: string): string {
  const { code, stdout, stderr } = new Deno.Command(command, { args: [path] })
    .outputSync();
  if (code !== 0) throw new Error(new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}
