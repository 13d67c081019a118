/**
 * The packaged file of an older version: what nodes and servers run that have not
 * been upgraded yet. It is made from that commit, by that commit's own scripts
 * and Deno, once.
 *
 * @module
 */

import { runOrMiss } from "./missing.ts";
import { ROOT } from "./packaged_file.ts";
import { madeOnce, programFolder } from "./program_cache.ts";

/** The last that came before what is worked on. */
const OLDER = "4005dc4145f6bcd234ea5d39ee50067687f15e5b";

const ARCHITECTURE = Deno.build.arch === "aarch64" ? "arm64" : "x64";

/**
 * The path of it.
 *
 * @throws {PeerMissingError} Without git or npm, or in a clone that has not the
 * commit.
 */
export async function olderProgram(): Promise<string> {
  return await madeOnce(
    `${programFolder()}/older-${OLDER.slice(0, 16)}/tunnel`,
    make,
  );
}

async function make(folder: string): Promise<string> {
  const run = (cwd: string, ...command: readonly string[]) =>
    runOrMiss(
      `the program of ${OLDER.slice(0, 8)} (a whole clone has it: ` +
        "git fetch --unshallow)",
      command,
      cwd,
    );
  const [sources, tar] = [`${folder}/sources`, `${folder}/sources.tar`];
  await run(ROOT, "git", "archive", `--output=${tar}`, OLDER);
  await Deno.mkdir(sources);
  await run(folder, "tar", "-xf", tar, "-C", sources);
  const pins = await Deno.readTextFile(`${sources}/scripts/runtime_pins.ts`);
  const version = new RegExp(`linux-${ARCHITECTURE}-glibc",\\s*version: "(.+)"`)
    .exec(pins)![1]!;
  await run(
    sources,
    ...["npx", "-y", `deno@${version}`, "run", "--quiet", "--allow-all"],
    ...["scripts/package.ts", `--arch=${ARCHITECTURE}`, `--out=${folder}/out`],
  );
  for await (const { name } of Deno.readDir(`${folder}/out`)) {
    if (!name.endsWith(`-linux-${ARCHITECTURE}`)) continue;
    await Deno.rename(`${folder}/out/${name}`, `${folder}/made`);
  }
  for (const rest of [sources, tar, `${folder}/out`]) {
    await Deno.remove(rest, { recursive: true });
  }
  return `${folder}/made`;
}
