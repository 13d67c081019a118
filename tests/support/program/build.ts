// deno-lint-ignore-file no-console -- a command that prints a path.
/**
 * Makes the packaged file of the sources, unless it is there, and prints where
 * it is. Any number may run at once: one makes it, the others wait for that.
 *
 * Usage: `deno task program`
 *
 * @module
 */

import {
  type Architecture,
  RUNTIME_PINS,
} from "../../../scripts/runtime_pins.ts";
import {
  bundle,
  type Carried,
  carriedRuntime,
  packageFor,
} from "../../../scripts/package.ts";
import { packagedPath } from "./packaged_file.ts";
import { madeOnce, programFolder, removeFolder } from "./program_cache.ts";

/** Files that are kept though nobody uses them: other branches, other clones. */
const KEPT = 8;

/** The name of a folder of those. */
const OF_SOURCES = /^[0-9a-f]{16}$/;

/** A file that was used so lately may be in use, whatever else there is. */
const IN_USE_MS = 6 * 3_600_000;

const ARCHITECTURE: Architecture = Deno.build.arch === "aarch64"
  ? "arm64"
  : "x64";

async function main(): Promise<string> {
  const path = packagedPath();
  return await madeOnce(path, async (fresh) => {
    const folder = programFolder();
    await removeUnused(folder);
    const runtime = await compressedRuntime(folder);
    const modules = await bundle();
    const made = await packageFor(ARCHITECTURE, modules, fresh, runtime);
    if (packagedPath() === path) return made;
    throw new Error("The sources were edited meanwhile: run this again");
  });
}

/** Compressing it takes longer than all the rest, and it hardly ever changes. */
async function compressedRuntime(folder: string): Promise<Carried> {
  const { version, integrity } = RUNTIME_PINS[ARCHITECTURE];
  const stamp = integrity.replaceAll(/\W/g, "").slice(0, 24);
  const path = `${folder}/runtime-${version}-${stamp}`;
  try {
    const facts = JSON.parse(await Deno.readTextFile(`${path}.json`));
    return { ...facts, compressed: await Deno.readFile(`${path}.gz`) };
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  const { compressed, ...facts } = await carriedRuntime(ARCHITECTURE);
  await Deno.writeFile(`${path}.gz`, compressed);
  // Last and at once: what says that the other one is whole.
  await Deno.writeTextFile(`${path}.json.new`, JSON.stringify(facts));
  await Deno.rename(`${path}.json.new`, `${path}.json`);
  return { ...facts, compressed };
}

/** Each is 44 MB. */
async function removeUnused(folder: string): Promise<void> {
  const files: { folder: string; usedMs: number }[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (!isDirectory || !OF_SOURCES.test(name)) continue;
    const usedMs = await Deno.stat(`${folder}/${name}/tunnel`)
      .then(({ mtime }) => mtime!.getTime(), () => 0);
    files.push({ folder: `${folder}/${name}`, usedMs });
  }
  files.sort((a, b) => b.usedMs - a.usedMs);
  const oldest = Date.now() - IN_USE_MS;
  for (const { folder, usedMs } of files.slice(KEPT)) {
    if (usedMs < oldest) await removeFolder(folder);
  }
}

if (import.meta.main) console.log(await main());
