import { assert, assertRejects } from "@std/assert";
import {
  inMemoryFolder,
  memoryFolder,
} from "../../tests/support/memory_folder.ts";
import { createAuthorities, loadAuthorities } from "./authorities.ts";
import { StateDirectory, StateError } from "./state_directory.ts";

/** The authority's key, which must never be another one silently. */
async function openedPin(root: string): Promise<string> {
  const { state } = await StateDirectory.openOrCreate(root, createAuthorities);
  return (await loadAuthorities(state)).current.facts.publicKeySha256;
}

type Damage = readonly [
  name: string,
  damage: (root: string) => Promise<void> | void,
  words: string,
];

const DAMAGES: readonly Damage[] = [
  ["a foreign file", async (root) => {
    await Deno.remove(root, { recursive: true });
    await Deno.mkdir(root);
    await Deno.writeTextFile(`${root}/notes.txt`, "mine");
  }, "it holds notes.txt but no file"],
  [
    "no format",
    (root) => Deno.remove(`${root}/format`),
    'no file "format"',
  ],
  [
    "an empty format",
    (root) => Deno.writeTextFile(`${root}/format`, ""),
    "/format: it is empty",
  ],
  [
    "a truncated format",
    (root) => Deno.truncate(`${root}/format`, 10),
    "/format: it is no whole JSON",
  ],
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
  [
    "empty roles",
    (root) => Deno.truncate(`${root}/ca/roles.json`),
    "roles.json: it is empty",
  ],
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
  [
    "a CA that others may read",
    (root) => Deno.chmod(caFile(root), 0o644),
    "its mode is 0644, wanted 0600",
  ],
  [
    "a directory that others may write to",
    (root) => Deno.chmod(root, 0o777),
    "its mode is 0777, wanted 0700",
  ],
  [
    "a folder that others may write to",
    (root) => Deno.chmod(`${root}/nodes`, 0o770),
    "nodes: its mode is 0770",
  ],
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
      const error = await assertRejects(() => openedPin(folder), StateError);
      assert((error as Error).message.includes(words), String(error));
    }));
}
