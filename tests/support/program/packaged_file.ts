/**
 * The packaged file of the sources as they are now. It is made once for each
 * content and lies in `tunnel-peers/program` of the user's cache folder, so that
 * the next run, and another clone of the same commit, have it at once.
 *
 * @module
 */

import { createHash } from "node:crypto";
import { isThere, programFolder } from "./program_cache.ts";

/** Of the project, with a slash at its end. */
export const ROOT = new URL("../../../", import.meta.url).pathname;

/** What a packaged file is made from. */
const PARTS = [
  ...[
    "admin",
    "agent",
    "services",
    "cli",
    "client",
    "net",
    "neighbours",
    "platform",
  ],
  ...["policy", "proto", "scripts", "server", "std"],
  ...["main.ts", "deno.json", "deno.lock"],
] as const;

/** Files beside them that never get into it. */
const NEVER_IN_IT = /_(?:test|bench)\.ts$/;

/** Where the file of these sources is, or will be. */
export function packagedPath(): string {
  const hash = createHash("sha256");
  for (const part of PARTS) addTo(hash, part);
  return `${programFolder()}/${hash.digest("hex").slice(0, 16)}/tunnel`;
}

/**
 * The path of the packaged file, which is made first if it has to be: some
 * seconds, and a download the first time.
 *
 * Synchronous, for whoever puts a command line together; nothing else can go on
 * without the program anyway.
 *
 * @throws {Error} When it cannot be made.
 */
export function packagedFile(): string {
  const path = packagedPath();
  if (isThere(path)) return path;
  const build = new URL("build.ts", import.meta.url).pathname;
  const { success, stdout, stderr } = new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--allow-all", build],
    cwd: ROOT,
    env: { NO_COLOR: "1" },
    stdin: "null",
  }).outputSync();
  const [made, complaint] = [stdout, stderr].map((bytes) =>
    new TextDecoder().decode(bytes).trim()
  );
  if (!success) throw new Error(`Cannot make the program: ${complaint}`);
  return made!;
}

function addTo(hash: ReturnType<typeof createHash>, path: string): void {
  if (Deno.statSync(ROOT + path).isFile) {
    if (NEVER_IN_IT.test(path)) return;
    hash.update(`${path}\0`).update(Deno.readFileSync(ROOT + path));
    return;
  }
  const names = [...Deno.readDirSync(ROOT + path)].map(({ name }) => name);
  for (const name of names.sort()) addTo(hash, `${path}/${name}`);
}
