/**
 * Files of a release are the same, whenever and wherever they are made: written
 * with the mode that they shall have, packed with the time of the sources.
 *
 * @module
 */

import { toBytes } from "@std/streams";

/** Writes a file into folders that are made when they are missing. */
export async function writeAt(
  path: string,
  content: string | Uint8Array,
  mode: number,
): Promise<void> {
  const folder = path.slice(0, path.lastIndexOf("/"));
  await Deno.mkdir(folder, { recursive: true });
  const bytes = typeof content === "string"
    ? new TextEncoder().encode(content)
    : content;
  await Deno.writeFile(path, bytes);
  // Whatever the umask is.
  await Deno.chmod(path, mode);
}

/** By gzip without a time or a name. */
export async function gzipped(text: string): Promise<Uint8Array> {
  const stream = new Blob([text]).stream()
    .pipeThrough(new CompressionStream("gzip"));
  return await toBytes(stream);
}

/**
 * When the sources were made, in seconds: `SOURCE_DATE_EPOCH`, else the last
 * commit's, else 0.
 */
export async function sourceTime(): Promise<number> {
  const given = Number(Deno.env.get("SOURCE_DATE_EPOCH"));
  if (Number.isInteger(given) && given > 0) return given;
  try {
    return Number(await run(["git", "log", "-1", "--format=%ct"]));
  } catch {
    return 0;
  }
}

/**
 * Runs a program of the machine, at the time of the sources.
 *
 * @returns What it prints.
 * @throws {Error} Its own words, or that it is missing.
 */
export async function run(
  [command = "", ...args]: readonly string[],
  env: Record<string, string> = {},
): Promise<string> {
  let output: Deno.CommandOutput;
  try {
    output = await new Deno.Command(command, { args, env }).output();
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    throw new Error(`Cannot run ${command}: it is not installed here`);
  }
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes).trim();
  if (output.success) return text(output.stdout);
  throw new Error(`Cannot run ${command}: ${text(output.stderr)}`);
}
