/**
 * Inputs on disk: one file each, in hexadecimal, with a word on where it is from.
 *
 * Text, so that a reviewer can see what a commit adds.
 *
 * @module
 */

const FOLDER = new URL("corpus/", import.meta.url);
const SUFFIX = ".hex";
const DIGITS_PER_LINE = 64;

/** An input and the file it is from. */
export interface StoredInput {
  readonly name: string;
  readonly input: Uint8Array;
}

/** All stored inputs of a target, by file name; none if it has no folder. */
export async function readCorpus(target: string): Promise<StoredInput[]> {
  const folder = new URL(`${target}/`, FOLDER);
  const stored: StoredInput[] = [];
  try {
    for await (const { name } of Deno.readDir(folder)) {
      if (!name.endsWith(SUFFIX)) continue;
      const text = await Deno.readTextFile(new URL(name, folder));
      stored.push({ name, input: parseHex(text) });
    }
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  return stored.sort((a, b) => a.name < b.name ? -1 : 1);
}

/**
 * Keeps an input that broke a target.
 *
 * @param remark One or more lines for people.
 * @returns The file's path from the root of the project.
 */
export async function storeCrash(
  target: string,
  input: Uint8Array,
  remark: string,
): Promise<string> {
  const octets = new Uint8Array(input);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", octets));
  const path = `${target}/crash_${digest.toHex().slice(0, 12)}${SUFFIX}`;
  await Deno.mkdir(new URL(`${target}/`, FOLDER), { recursive: true });
  await Deno.writeTextFile(new URL(path, FOLDER), formatHex(input, remark));
  return `tests/fuzz/corpus/${path}`;
}

/** The text of a corpus file. */
export function formatHex(input: Uint8Array, remark: string): string {
  const digits = input.toHex();
  const lines = remark.split("\n").map((line) => `# ${line}`);
  for (let at = 0; at < digits.length; at += DIGITS_PER_LINE) {
    lines.push(digits.slice(at, at + DIGITS_PER_LINE));
  }
  return lines.join("\n") + "\n";
}

/** The octets of a corpus file; lines that start with `#` are remarks. */
export function parseHex(text: string): Uint8Array {
  const lines = text.split("\n").filter((line) => !line.startsWith("#"));
  return Uint8Array.fromHex(lines.join("").replaceAll(/\s/g, ""));
}
