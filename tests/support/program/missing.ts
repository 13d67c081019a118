/**
 * What is said of a peer that cannot be had.
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
