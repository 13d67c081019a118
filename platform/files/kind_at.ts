/**
 * The kind of file at a path.
 *
 * @module
 */

/** `hidden`: this user may not look there. */
export type KindAt =
  | "absent"
  | "directory"
  | "file"
  | "hidden"
  | "other"
  | "socket";

/** Follows links. */
export function kindAt(path: string): KindAt {
  try {
    const { isDirectory, isFile, isSocket } = Deno.statSync(path);
    if (isDirectory) return "directory";
    return isFile ? "file" : isSocket ? "socket" : "other";
  } catch (error) {
    return error instanceof Deno.errors.NotFound ? "absent" : "hidden";
  }
}

/** Whether there may be a directory: another user's exists, too. */
export function mayBeDirectory(path: string): boolean {
  return ["directory", "hidden"].includes(kindAt(path));
}
