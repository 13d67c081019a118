/**
 * A file system that is soon full, where one may be mounted.
 *
 * @module
 */

/** @returns Its folder; `undefined` where none may be mounted. */
export async function tinyDisk(kib: number): Promise<string | undefined> {
  const folder = await Deno.makeTempDir({ prefix: "tiny-" });
  const { success } = await new Deno.Command("mount", {
    args: ["-t", "tmpfs", "-o", `size=${kib}k,mode=0700`, "tmpfs", folder],
    stderr: "null",
  }).output().catch(() => ({ success: false }));
  if (success) return folder;
  await Deno.remove(folder);
  return undefined;
}

/** Leaves no byte free. @returns The file that takes them. */
export async function fillDisk(folder: string): Promise<string> {
  const path = `${folder}/ballast`;
  using file = await Deno.open(path, { create: true, append: true });
  // Smaller and smaller, to the last page.
  for (const bytes of [65_536, 4_096, 1]) {
    const chunk = new Uint8Array(bytes);
    try {
      for (;;) await file.write(chunk);
    } catch (error) {
      if ((error as { code?: string }).code !== "ENOSPC") throw error;
    }
  }
  return path;
}

export async function unmount(folder: string): Promise<void> {
  await new Deno.Command("umount", { args: [folder] }).output();
  await Deno.remove(folder);
}
