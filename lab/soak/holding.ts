/**
 * What a process holds, as the kernel counts it.
 *
 * @module
 */

/** See the module description. */
export interface Holding {
  readonly memoryKib: number;
  readonly descriptors: number;
}

/** What the process `pid` holds now. */
export async function holding(pid: number): Promise<Holding> {
  // Deno opens /proc to nobody with less than all permissions.
  const read = async (program: string, ...args: string[]) => {
    const { stdout } = await new Deno.Command(program, { args }).output();
    return new TextDecoder().decode(stdout);
  };
  const status = await read("cat", `/proc/${pid}/status`);
  const descriptors = await read("ls", `/proc/${pid}/fd`);
  return {
    memoryKib: Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? NaN),
    descriptors: descriptors.trim().split("\n").length,
  };
}
