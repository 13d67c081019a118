import { assertEquals, assertStringIncludes } from "@std/assert";
import { inMemoryFolder } from "../tests/support/memory/memory_folder.ts";
import { createAuthorities } from "../server/identity/authorities.ts";
import { DirectoryStore } from "../neighbours/store/directory_store.ts";
import { run } from "./run.ts";
import { ran } from "../tests/support/program/command_line.ts";

function said(...argv: readonly string[]) {
  const { readTextFileSync: readFile } = Deno;
  return ran(run, ["state", ...argv], { readFile });
}

Deno.test("a state is copied into an empty place, encrypted, and checked", () =>
  inMemoryFolder(async (folder) => {
    const [one, two, key] = ["one", "two", "key"].map((it) =>
      `${folder}/${it}`
    );
    await DirectoryStore.openOrCreate(one!, createAuthorities);
    await Deno.writeFile(key!, new Uint8Array(32), { mode: 0o600 });
    const copied = await said("copy", one!, two!, `--to-key-file=${key}`);
    assertStringIncludes(
      copied.output,
      "Copied 3 records of the CA, 0 of tokens",
    );
    const check = await said("check", `--state=${two}`);
    assertStringIncludes(check.errors, "it is encrypted with the key");
    const whole = await said(
      "check",
      `--state=${two}`,
      `--state-key-file=${key}`,
    );
    assertEquals([whole.code, whole.errors], [0, ""]);
    const again = await said("copy", one!, two!, `--to-key-file=${key}`);
    assertStringIncludes(again.errors, "name a directory that is empty");
    const none = await said("copy", `${folder}/none`, `${folder}/three`);
    assertStringIncludes(none.errors, "there is no identity in it");
  }));

Deno.test("tunnel state refuses what makes no sense, in one line", async () => {
  const cases: readonly (readonly [argv: readonly string[], words: string])[] =
    [
      [[], "tunnel state wants copy FROM TO, check"],
      [["copy", "/a"], "Cannot copy: wanted tunnel state copy FROM TO"],
      [["frob"], 'Cannot do "frob": tunnel state knows copy FROM TO, check'],
      [["copy", "/a", "/b", "/c"], 'Unexpected word "/c"'],
      [["copy", "/a", "/b", "--state=/c"], "--state with state copy"],
      [["copy", "/a", "/a"], "Cannot copy /a into itself (/a)"],
      [["copy", "/a/", "/a/b"], "Cannot copy /a/ into itself (/a/b): name a"],
      [["copy", "./a", "a/../a/b"], "Cannot copy ./a into itself (a/../a/b)"],
      [["copy", "etcd://h", "etcd://h/b"], "give --from-key-file FILE"],
      [["copy", "/a", "etcd://h"], "give --to-key-file FILE"],
      [["copy", "kubernetes", "/a"], "give --from-key-file FILE"],
      [["check", "--to-key-file=/k"], "it belongs to copy"],
    ];
  for (const [argv, words] of cases) {
    const { code, errors: error } = await said(...argv);
    assertEquals(code, 2, argv.join(" "));
    assertStringIncludes(error, words);
  }
});
