import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { createAuthorities, loadAuthorities } from "../identity/authorities.ts";
import { DirectoryStore } from "../../neighbours/store/directory_store.ts";
import { damaged, StoreError } from "../../neighbours/store/store_error.ts";
import { inMemoryFolder } from "../../tests/support/memory/memory_folder.ts";

/** The authority's key, which must never be another one silently. */
async function openedPin(root: string): Promise<string> {
  const { state } = await DirectoryStore.openOrCreate(root, createAuthorities);
  return (await loadAuthorities(state)).current.facts.publicKeySha256;
}

Deno.test("a directory is made once, for its owner only", () =>
  inMemoryFolder(async (folder) => {
    const root = `${folder}/a/b`;
    const [one, other] = await Promise.all([openedPin(root), openedPin(root)]);
    assertEquals(one, other, "two servers that start at once");
    assertEquals(await openedPin(root), one);
    for (const name of ["", "/ca", "/nodes", "/tokens"]) {
      assertEquals((await Deno.stat(root + name)).mode! & 0o777, 0o700, name);
    }
    assertEquals((await Deno.stat(`${root}/format`)).mode! & 0o777, 0o600);
  }));

Deno.test("an empty volume with its lost+found is an empty directory", () =>
  inMemoryFolder(async (folder) => {
    await Deno.mkdir(`${folder}/lost+found`);
    await openedPin(folder);
  }));

Deno.test("a directory that is missing is not made by a reader", () =>
  inMemoryFolder(async (folder) => {
    await assertRejects(
      () => DirectoryStore.open(`${folder}/none`),
      StoreError,
      "start `tunnel server` first",
    );
    await assertRejects(
      () => Deno.stat(`${folder}/none`),
      Deno.errors.NotFound,
    );
  }));

Deno.test("what was left half made is begun anew", () =>
  inMemoryFolder(async (folder) => {
    const root = `${folder}/state`;
    const fail = () => Promise.reject(new Error("killed"));
    await assertRejects(
      () =>
        DirectoryStore.openOrCreate(root, async (state) => {
          await createAuthorities(state);
          return fail();
        }),
      Error,
      "killed",
    );
    await assertRejects(() => DirectoryStore.open(root), StoreError);
    await openedPin(root);
    assertEquals([...Deno.readDirSync(`${root}/ca`)].length, 3);
  }));

Deno.test("a half made directory in which somebody joined is refused", () =>
  inMemoryFolder(async (folder) => {
    await openedPin(folder);
    await Deno.remove(`${folder}/format`);
    await Deno.writeTextFile(`${folder}/creating`, "");
    await Deno.writeTextFile(`${folder}/nodes/a.json`, "{}");
    await assertRejects(() => openedPin(folder), StoreError, "No new CA");
  }));

Deno.test("changes wait for each other, and a failed one stops nobody", () =>
  inMemoryFolder(async (folder) => {
    await openedPin(folder);
    const [one, other] = [
      await DirectoryStore.open(folder),
      await DirectoryStore.open(folder),
    ];
    const seen: string[] = [];
    const change = (name: string) => async () => {
      seen.push(`${name} begins`);
      await Deno.stat(folder);
      seen.push(`${name} ends`);
      if (name === "b") throw new Error("b failed");
    };
    const [, b] = await Promise.allSettled([
      one.exclusively(change("a")),
      one.exclusively(change("b")),
      other.exclusively(change("c")),
    ]);
    assertEquals(b.status, "rejected");
    for (let index = 0; index < 6; index += 2) {
      assertEquals(seen[index]!.split(" ")[0], seen[index + 1]!.split(" ")[0]);
    }
  }));

Deno.test("a full disk is named in the error, with the directory", () =>
  inMemoryFolder(async (folder) => {
    const full = () =>
      Promise.reject(Object.assign(new Error("os error"), { code: "ENOSPC" }));
    const sentence =
      `Cannot use ${folder}/state: the disk is full; make room and try again`;
    await assertRejects(
      () => DirectoryStore.openOrCreate(`${folder}/state`, full),
      StoreError,
      sentence,
    );
    const { state } = await DirectoryStore.openOrCreate(
      `${folder}/state`,
      createAuthorities,
    );
    await assertRejects(() => state.exclusively(full), StoreError, sentence);
  }));

Deno.test("a damaged token or node can be removed, anything else is restored", () => {
  const records = { noun: "the state", where: (key: string) => `/s/${key}` };
  const remedyOf = (key: string) =>
    damaged(records, key, "it is empty").message;
  for (
    const [path, remedy] of [
      ["tokens/abc.json", "`tunnel token revoke abc` removes it"],
      ["tokens/abc.use-3", "`tunnel token revoke abc` removes it"],
      ["nodes/a.b.json", "`tunnel node forget a.b` removes it"],
      ["ca/roles.json", "from a backup"],
    ] as const
  ) assertStringIncludes(remedyOf(path), remedy);
});
