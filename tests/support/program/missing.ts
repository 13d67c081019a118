/**
 * Where peers lie that were fetched or built, how they get there whole, and what
 * is said of one that cannot be had.
 *
 * @module
 */

/** A peer that is neither there nor can be built here; the message says why. */
export class PeerMissingError extends Error {
  override name = "PeerMissingError";
}

/**
 * Runs what fetches or builds a peer.
 *
 * @throws {PeerMissingError} When the program is not there, or fails.
 */
export async function runOrMiss(
  peer: string,
  command: readonly string[],
  cwd?: string,
): Promise<string> {
  const [program, ...args] = command;
  try {
    const { success, stdout, stderr } = await new Deno.Command(program!, {
      args,
      ...(cwd === undefined ? {} : { cwd }),
      stdin: "null",
    }).output();
    if (success) return new TextDecoder().decode(stdout).trim();
    const said = new TextDecoder().decode(stderr).trim();
    throw new PeerMissingError(
      `Cannot have ${peer}: ${command.join(" ")} failed: ${said}`,
    );
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    throw new PeerMissingError(`Cannot have ${peer}: there is no ${program}`);
  }
}

/** A folder of `tunnel-peers` in the user's cache folder; it may not be there. */
export function peerFolder(name: string): string {
  const cache = Deno.env.get("XDG_CACHE_HOME") ??
    `${Deno.env.get("HOME")}/.cache`;
  return `${cache}/tunnel-peers/${name}`;
}

/**
 * Makes `folder`, unless it is there: renamed into place, so that nobody ever
 * finds half of it.
 */
export async function madeWhole(
  folder: string,
  make: (fresh: string) => Promise<void>,
): Promise<string> {
  if (await factsOf(folder)) return folder;
  const fresh = `${folder}.${crypto.randomUUID()}`;
  await Deno.mkdir(fresh, { recursive: true });
  try {
    await make(fresh);
    await Deno.rename(fresh, folder);
  } catch (error) {
    await Deno.remove(fresh, { recursive: true });
    // Somebody else was quicker: files of one process may want it at once.
    if (!await factsOf(folder)) throw error;
  }
  return folder;
}

/** Of a program, not of a folder that has its name. */
export async function isFile(path: string): Promise<boolean> {
  return (await factsOf(path))?.isFile ?? false;
}

async function factsOf(path: string): Promise<Deno.FileInfo | undefined> {
  try {
    return await Deno.stat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    if (error instanceof Deno.errors.NotADirectory) return undefined;
    throw error;
  }
}
