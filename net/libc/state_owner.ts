/**
 * The owner of a state directory.
 *
 * A service has a user of its own. Root creates tokens there and reads it, and
 * must leave no file in it that the service's user cannot read.
 *
 * @module
 */

import { openLibc } from "./libc.ts";

/**
 * The owner of `directory`, if this process is root and the owner is another
 * user.
 */
function ownerOf(directory: string): Deno.FileInfo | undefined {
  if (Deno.uid() !== 0) return undefined;
  try {
    const seen = Deno.statSync(directory);
    return seen.uid === 0 ? undefined : seen;
  } catch {
    // The first user creates a missing directory.
    return undefined;
  }
}

/**
 * Switches to the user who owns `directory`, for good: for commands that change
 * files in it.
 */
export function actAsOwner(directory: string): void {
  const owner = ownerOf(directory);
  const library = openLibc();
  if (owner === undefined || library === undefined) return;
  const { uid, gid } = owner;
  // For all threads; the user last, because it could not change the others.
  const failed = library.setgroups(0n, null) || library.setgid(gid ?? 0) ||
    library.setuid(uid ?? 0);
  if (failed !== 0) {
    throw new Error(`Cannot act as user ${uid}, to whom ${directory} belongs`);
  }
}

/** The user whose service has `directory`, when root is about to run there. */
export function foreignOwner(directory: string): number | undefined {
  return ownerOf(directory)?.uid ?? undefined;
}
