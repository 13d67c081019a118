import { assert, assertEquals, assertRejects } from "@std/assert";
import {
  inMemoryFolder,
  memoryFolder,
} from "../../tests/support/memory/memory_folder.ts";
import { Prng } from "../../tests/support/memory/prng.ts";
import {
  createAuthorities,
  loadAuthorities,
  rotateAuthority,
} from "./authorities.ts";
import { DirectoryStore } from "../../neighbours/store/directory_store.ts";
import { StoreError } from "../../neighbours/store/store_error.ts";

/** The authority's key, which must never be another one silently. */
async function openedPin(root: string): Promise<string> {
  const { state } = await DirectoryStore.openOrCreate(root, createAuthorities);
  return (await loadAuthorities(state)).current.facts.publicKeySha256;
}

type Damage = readonly [
  name: string,
  damage: (root: string) => Promise<void> | void,
  words: string,
];

// deno-fmt-ignore: a case is a line.
const DAMAGES: readonly Damage[] = [
  ["a foreign file", async (root) => {
    await Deno.remove(root, { recursive: true });
    await Deno.mkdir(root);
    await Deno.writeTextFile(`${root}/notes.txt`, "mine");
  }, "it holds notes.txt but no file"],
  ["no format", (root) => Deno.remove(`${root}/format`), 'no file "format"'],
  ["an empty format", (root) => Deno.writeTextFile(`${root}/format`, ""), "/format: it is empty"],
  ["a truncated format", (root) => Deno.truncate(`${root}/format`, 10), "/format: it is no whole JSON"],
  [
    "another kind of directory",
    (root) => Deno.writeTextFile(`${root}/format`, '{"format":"x"}'),
    "another kind of directory",
  ],
  [
    "a newer format",
    (root) =>
      Deno.writeTextFile(
        `${root}/format`,
        '{"format":"tunnel-server-state","version":2}',
      ),
    "made by a newer tunnel",
  ],
  ["no roles", (root) => Deno.remove(`${root}/ca/roles.json`), "roles.json"],
  ["empty roles", (root) => Deno.truncate(`${root}/ca/roles.json`), "roles.json: it is empty"],
  [
    "roles that are a path",
    (root) =>
      Deno.writeTextFile(`${root}/ca/roles.json`, '{"current":"../../x"}'),
    "does not name the authorities",
  ],
  ["no CA", (root) => Deno.remove(caFile(root)), "there is no such file"],
  ["an empty CA", (root) => Deno.truncate(caFile(root)), "it is empty"],
  ["half a CA", (root) => Deno.truncate(caFile(root), 200), "whole PEM block"],
  ["a CA without key", (root) => Deno.truncate(caFile(root), 620), "whole PEM"],
  ["a CA that others may read", (root) => Deno.chmod(caFile(root), 0o644), "its mode is 0644, wanted 0600"],
  ["a directory that others may write to", (root) => Deno.chmod(root, 0o777), "its mode is 0777, wanted 0700"],
  ["a folder that others may write to", (root) => Deno.chmod(`${root}/nodes`, 0o770), "nodes: its mode is 0770"],
  ["another CA's file", async (root) => {
    const other = memoryFolder();
    await openedPin(other);
    await Deno.copyFile(caFile(other), caFile(root));
    await Deno.remove(other, { recursive: true });
  }, "another authority than its name says"],
  ["a missing folder", (root) => Deno.remove(`${root}/tokens`), "/tokens"],
];

function caFile(root: string): string {
  const name = [...Deno.readDirSync(`${root}/ca`)]
    .map(({ name }) => name).find((name) => name.endsWith(".pem"));
  return `${root}/ca/${name}`;
}

for (const [name, damage, words] of DAMAGES) {
  Deno.test(`a state directory with ${name} is refused, by its file`, () =>
    inMemoryFolder(async (folder) => {
      await openedPin(folder);
      await damage(folder);
      const error = await assertRejects(() => openedPin(folder), StoreError);
      assert((error as Error).message.includes(words), String(error));
    }));
}

/** Every file below `folder`. */
function filesIn(folder: string): string[] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory }) =>
    isDirectory ? filesIn(`${folder}/${name}`) : [`${folder}/${name}`]
  ).sort();
}

/** Harms one file in one way. */
function harm(prng: Prng, path: string): string {
  const bytes = Deno.readFileSync(path);
  const at = prng.below(bytes.length + 1);
  switch (prng.below(6)) {
    case 0:
      Deno.removeSync(path);
      return "removed";
    case 1:
      Deno.truncateSync(path, at);
      return `cut at ${at}`;
    case 2: {
      for (let flips = 1 + prng.below(4); flips > 0; flips--) {
        bytes[prng.below(bytes.length)]! ^= 1 << prng.below(8);
      }
      Deno.writeFileSync(path, bytes);
      return "flipped";
    }
    case 3:
      Deno.writeFileSync(path, prng.bytes(prng.below(300)));
      return "noise";
    case 4:
      Deno.chmodSync(path, prng.pick([0o644, 0o666, 0o620, 0o604]));
      return "opened to others";
    default: {
      Deno.writeFileSync(path, bytes.subarray(at));
      return `begins at ${at}`;
    }
  }
}

Deno.test("whatever is done to a file, no other authority takes its place", () =>
  inMemoryFolder(async (folder) => {
    const prng = Prng.fromEnvironment();
    const seen = { refused: 0, same: 0 };
    for (let round = 0; round < 300; round++) {
      const root = `${folder}/${round}`;
      const key = await openedPin(root);
      if (prng.below(2) === 0) {
        await rotateAuthority(await DirectoryStore.open(root));
      }
      const path = prng.pick(filesIn(root));
      const what = `seed ${prng.seed}: ${path} ${harm(prng, path)}`;
      try {
        assertEquals(await openedPin(root), key, what);
        seen.same++;
      } catch (error) {
        assert(error instanceof StoreError, `${what}: ${error}`);
        assert(/^Cannot use /.test(error.message), `${what}: ${error}`);
        seen.refused++;
      }
      await Deno.remove(root, { recursive: true });
    }
    assert(seen.refused > 100 && seen.same > 20, JSON.stringify(seen));
  }));
