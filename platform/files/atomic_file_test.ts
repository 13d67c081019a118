import { assertEquals, assertRejects } from "@std/assert";
import { inMemoryFolder } from "../../tests/support/memory/memory_folder.ts";
import {
  createFile,
  finishedFiles,
  keepFile,
  removeFile,
  removeUnfinished,
  removeUnfinishedOf,
  replaceFile,
} from "./atomic_file.ts";

Deno.test("a file is replaced as a whole, for its owner only", () =>
  inMemoryFolder(async (folder) => {
    const path = `${folder}/a`;
    await replaceFile(path, "one");
    await replaceFile(path, "two");
    assertEquals(await Deno.readTextFile(path), "two");
    assertEquals((await Deno.stat(path)).mode! & 0o777, 0o600);
    assertEquals(await finishedFiles(folder), ["a"]);
  }));

Deno.test("of several who create a file at once one wins, with its content", () =>
  inMemoryFolder(async (folder) => {
    const path = `${folder}/claim`;
    const tries = Array.from({ length: 8 }, (_, i) => createFile(path, `${i}`));
    const won = await Promise.all(tries);
    assertEquals(won.filter((w) => w).length, 1);
    assertEquals(await Deno.readTextFile(path), `${won.indexOf(true)}`);
    assertEquals(await finishedFiles(folder), ["claim"]);
  }));

Deno.test("a file that cannot be put in place leaves nothing behind", () =>
  inMemoryFolder(async (folder) => {
    await Deno.mkdir(`${folder}/a`);
    await Deno.writeTextFile(`${folder}/a/x`, "");
    await assertRejects(() => replaceFile(`${folder}/a`, "text"));
    await assertRejects(() => replaceFile(`${folder}/none/a`, "text"));
    const names = [...Deno.readDirSync(folder)].map(({ name }) => name);
    assertEquals(names, ["a"]);
  }));

Deno.test("what a crash has left is not listed, and can be removed", () =>
  inMemoryFolder(async (folder) => {
    const left = `${folder}/.unfinished-x`;
    await Deno.writeTextFile(left, "hal");
    assertEquals(await finishedFiles(folder), []);
    await removeUnfinished(folder);
    assertEquals(await removeFile(left), false);
  }));

Deno.test("what one file has left is removed without what others write", () =>
  inMemoryFolder(async (folder) => {
    const long = "a".repeat(255);
    await replaceFile(`${folder}/${long}`, "its name is as long as one can be");
    const own = `${folder}/.unfinished-a.json-1`;
    const other = `${folder}/.unfinished-b.json-1`;
    for (const left of [own, other]) await Deno.writeTextFile(left, "hal");
    await removeUnfinishedOf(`${folder}/a.json`);
    assertEquals(await removeFile(own), false);
    assertEquals(await removeFile(other), true);
  }));

Deno.test("what is kept is written only if it is news, and costs no start", () =>
  inMemoryFolder(async (folder) => {
    const path = `${folder}/kept`;
    const lines: string[] = [];
    const keep = (at: string, text: string) =>
      keepFile(at, text, (line) => lines.push(line));
    const inode = async () => (await Deno.stat(path)).ino;
    assertEquals(await keep(path, "one"), true);
    const before = await inode();
    assertEquals(await keep(path, "one"), true);
    assertEquals(await inode(), before);
    assertEquals(await keep(path, "two"), true);
    assertEquals(await Deno.readTextFile(path), "two");
    assertEquals(await keep(`${folder}/none/a`, "text"), false);
    assertEquals(lines, [
      `Cannot keep ${folder}/none/a: there is no such file`,
    ]);
  }));
