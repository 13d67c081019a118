import { assertEquals } from "@std/assert";
import { packagedFile } from "./packaged_file.ts";
import { programFolder } from "./program_cache.ts";
import { mustEnd } from "./run.ts";

/** Runs the command in a cache folder; gives the path that it prints. */
async function build(cache: string): Promise<string> {
  const script = new URL("build.ts", import.meta.url).pathname;
  const printed = await mustEnd(
    [Deno.execPath(), "run", "--quiet", "--allow-all", script],
    { env: { XDG_CACHE_HOME: cache } },
  );
  return printed.trim();
}

Deno.test("three who want the program at once get one that is whole", async () => {
  const cache = await Deno.makeTempDir();
  try {
    // The runtime is not what is looked at, and would be compressed anew.
    packagedFile();
    const folder = `${cache}/tunnel-peers/program`;
    await Deno.mkdir(folder, { recursive: true });
    for await (const { name } of Deno.readDir(programFolder())) {
      if (!/^runtime-.*[nz]$/.test(name)) continue;
      await Deno.symlink(`${programFolder()}/${name}`, `${folder}/${name}`);
    }
    const [path, ...others] = await Promise.all(
      [1, 2, 3].map(() => build(cache)),
    );
    assertEquals(others, [path, path]);
    const folders = [...Deno.readDirSync(folder)]
      .filter(({ isDirectory }) => isDirectory);
    assertEquals(folders.length, 1);
    await mustEnd([path!, "version"]);
    const { ino } = await Deno.stat(path!);
    assertEquals(await build(cache), path);
    assertEquals((await Deno.stat(path!)).ino, ino);
  } finally {
    await Deno.remove(cache, { recursive: true });
  }
});
