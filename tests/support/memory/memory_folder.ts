/**
 * Folders for tests that write durably: in memory where the machine has that,
 * because what is tested there is not the disk.
 *
 * @module
 */

const MEMORY = "/dev/shm";

/** Runs `test` in a new folder and removes it. */
export async function inMemoryFolder(
  test: (folder: string) => Promise<void>,
): Promise<void> {
  const folder = memoryFolder();
  try {
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** A new folder; whoever asks removes it. */
export function memoryFolder(): string {
  try {
    return Deno.makeTempDirSync({ dir: MEMORY, prefix: "t-" });
  } catch {
    // Another system, a container without it, or a run without all rights, which
    // Deno wants for /dev: `task test` writes to the disk.
    return Deno.makeTempDirSync({ prefix: "t-" });
  }
}
