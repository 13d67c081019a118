import { assert, assertEquals, assertRejects } from "@std/assert";
import { inMemoryFolder } from "../../tests/support/memory/memory_folder.ts";
import {
  KEY_FILE_BYTES_MIN,
  openText,
  readSealingKey,
  sealingKey,
  sealText,
} from "./sealing.ts";
import { StoreError } from "./store_error.ts";

const RECORD = `ca/${"ab".repeat(8)}.pem`;
const OTHER = `ca/${"cd".repeat(8)}.pem`;
const TEXT = "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n";
const PLACE = { noun: "the state", where: (key: string) => `${key} there` };

function key(byte: number) {
  const bytes = new Uint8Array(KEY_FILE_BYTES_MIN).fill(byte);
  return sealingKey(bytes, `/key-${byte}`);
}

Deno.test("a private key is kept encrypted, never twice alike", async () => {
  const mine = await key(1);
  const sealed = await sealText(mine, RECORD, TEXT);
  assert(!sealed.includes("PRIVATE"), sealed);
  assert(sealed !== await sealText(mine, RECORD, TEXT));
  assertEquals(await openText(mine, PLACE, RECORD, sealed), TEXT);
  // The same file on another server.
  assertEquals(await openText(await key(1), PLACE, RECORD, sealed), TEXT);
});

Deno.test("what is no private key is kept as it is", async () => {
  const mine = await key(1);
  for (const [record, text] of [[RECORD, "CERTIFICATE"], ["nodes/a", TEXT]]) {
    assertEquals(await sealText(mine, record!, text!), text);
    assertEquals(await openText(mine, PLACE, record!, text!), text);
  }
});

Deno.test("another key, none, and damage are told apart", async () => {
  const [mine, other] = [await key(1), await key(2)];
  const sealed = await sealText(mine, RECORD, TEXT);
  const refused = (
    by: Awaited<ReturnType<typeof key>> | undefined,
    words: string,
    text = sealed,
    record = RECORD,
  ) =>
    assertRejects(
      () => openText(by, PLACE, record, text),
      StoreError,
      words,
    );
  await refused(other, `with the key ${mine.id}, and /key-2 is the key`);
  await refused(undefined, `encrypted with the key ${mine.id}; give`);
  await refused(mine, "it is not encrypted", TEXT);
  await refused(mine, "it was changed", sealed, OTHER);
  const { text, ...rest } = JSON.parse(sealed);
  const bytes = Uint8Array.fromBase64(text);
  for (const at of [0, bytes.length - 1]) {
    const damaged = bytes.slice();
    damaged[at]! ^= 1;
    const record = JSON.stringify({ ...rest, text: damaged.toBase64() });
    await refused(mine, "it was changed", record);
  }
  for (const odd of ["{", "{}", '{"sealed":"A256GCM"}', '{"sealed":"x"}']) {
    await refused(mine, "it is no whole encrypted key", odd);
  }
});

Deno.test("a key file is private, and long enough", () =>
  inMemoryFolder(async (folder) => {
    const path = `${folder}/key`;
    const read = () => readSealingKey({ kind: "file", path });
    await assertRejects(read, StoreError, "there is no such file");
    await Deno.writeFile(path, new Uint8Array(31), { mode: 0o600 });
    await assertRejects(read, StoreError, "it has 31 bytes, wanted 32");
    await Deno.writeFile(path, new Uint8Array(32));
    assertEquals((await read())?.id.length, 16);
    await Deno.chmod(path, 0o644);
    await assertRejects(read, StoreError, "its mode is 0644");
    assertEquals(await readSealingKey({ kind: "none" }), undefined);
  }));
