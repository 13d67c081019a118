/**
 * Where made programs lie, one folder for each, and how it stays in order while
 * several want one at once.
 *
 * @module
 */

import { peerFolder } from "./missing.ts";

/** Each program in it has a folder named after what it was made from. */
export function programFolder(): string {
  return peerFolder("program");
}

/** Whether a file has been made; if so, it counts as used now. */
export function isThere(path: string): boolean {
  try {
    const now = new Date();
    Deno.utimeSync(path, now, now);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/**
 * Makes `path`, unless it is there by the time that nobody else makes anything.
 *
 * @param make Makes the file in the folder that it is given.
 * @returns `path`.
 */
export async function madeOnce(
  path: string,
  make: (folder: string) => Promise<string>,
): Promise<string> {
  if (isThere(path)) return path;
  const folder = programFolder();
  await Deno.mkdir(folder, { recursive: true });
  // The lock ends with the process, however that ends.
  using lock = await Deno.open(`${folder}/lock`, { create: true, write: true });
  await lock.lock(true);
  if (isThere(path)) return path;
  const fresh = `${folder}/new`;
  await removeFolder(fresh);
  const home = path.slice(0, path.lastIndexOf("/"));
  await removeFolder(home);
  await Deno.mkdir(fresh);
  await Deno.rename(await make(fresh), `${fresh}/tunnel`);
  // Renamed into place, so that nobody ever starts half of a program.
  await Deno.rename(fresh, home);
  return path;
}

/** With all that is in it, if it is there. */
export async function removeFolder(folder: string): Promise<void> {
  try {
    await Deno.remove(folder, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
