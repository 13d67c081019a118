import { assert, assertEquals, assertRejects } from "@std/assert";
import { parseJoinToken } from "../../proto/identity/join_token.ts";
import { inMemoryFolder } from "../../tests/support/memory/memory_folder.ts";
import { isNamePattern } from "./claims.ts";
import { DirectoryStore } from "../../neighbours/store/directory_store.ts";
import { StoreError } from "../../neighbours/store/store_error.ts";
import {
  type TokenRecord,
  TokenRefusal,
  type TokenRequest,
  TokenStore,
  type TokenUse,
} from "./token_store.ts";

const PIN = "A".repeat(43);
const NOW = Date.UTC(2030, 0, 1);
const REQUEST: TokenRequest = {
  lifeMs: 1_000,
  uses: 1,
  nodePattern: "*",
  identifiers: "",
  needsApproval: false,
  note: "",
};

function inStore(test: (store: TokenStore, folder: string) => Promise<void>) {
  return inMemoryFolder(async (folder) => {
    const { state } = await DirectoryStore.openOrCreate(
      folder,
      () => Promise.resolve(),
    );
    await test(new TokenStore(state), folder);
  });
}

/** A change that is nothing but a claim. */
async function claim(
  folder: string,
  ...[record, use]: [TokenRecord, TokenUse]
): Promise<void> {
  const state = await DirectoryStore.open(folder);
  const store = new TokenStore(state);
  await state.transact((change) => store.claim(record, use, change));
}

function use(node: string, key = "aa") {
  return { node, publicKeySha256: key };
}

async function made(store: TokenStore, request: Partial<TokenRequest> = {}) {
  const { token } = await store.create({ ...REQUEST, ...request }, PIN, NOW);
  return parseJoinToken(token);
}

async function refused(
  asking: Promise<unknown>,
  reason: TokenRefusal["reason"],
): Promise<void> {
  const error = await assertRejects(() => asking, TokenRefusal);
  assertEquals((error as TokenRefusal).reason, reason);
}

Deno.test("a token is kept as a hash, and works until its time is over", () =>
  inStore(async (store, folder) => {
    const token = await made(store, { identifiers: "ipv4=10.0.0.1" });
    const file = await Deno.readTextFile(`${folder}/tokens/${token.id}.json`);
    assertEquals(file.includes(token.secret), false);
    const record = await store.check(token, use("n"), NOW + 999);
    assertEquals(record.identifiers, "ipv4=10.0.0.1");
    await refused(store.check(token, use("n"), NOW + 1_000), "expired");
  }));

Deno.test("a use is one node's: it may come again, others may not", () =>
  inStore(async (store, folder) => {
    const token = await made(store, { uses: 2 });
    const record = await store.check(token, use("n"), NOW);
    await claim(folder, record, use("n"));
    await store.check(token, use("n"), NOW + 5_000); // Even later.
    await claim(folder, record, use("o"));
    await claim(folder, record, use("n"));
    await refused(store.check(token, use("n", "bb"), NOW), "used-up");
    await refused(store.check(token, use("m"), NOW), "used-up");
    await refused(claim(folder, record, use("m")), "used-up");
  }));

Deno.test("a token is for names that match its pattern", () =>
  inStore(async (store) => {
    const token = await made(store, { nodePattern: "shop-*" });
    await store.check(token, use("shop-7"), NOW);
    await refused(store.check(token, use("a-shop-7"), NOW), "other-node");
    await refused(store.check(token, use("office-7"), NOW), "other-node");
  }));

Deno.test("what is not known is answered alike: no id, wrong secret, revoked", () =>
  inStore(async (store) => {
    const token = await made(store);
    const wrong = { ...token, secret: "A".repeat(22) };
    await refused(store.check(wrong, use("n"), NOW), "unknown");
    const other = { ...token, id: "aaaaaaaaaa" };
    await refused(store.check(other, use("n"), NOW), "unknown");
    assert(await store.revoke(token.id));
    await refused(store.check(token, use("n"), NOW), "unknown");
    assertEquals(await store.revoke(token.id), false);
    assertEquals(await store.revoke("../format"), false);
    assertEquals(await store.list(NOW), []);
  }));

Deno.test("a damaged token is refused by its file", () =>
  inStore(async (store, folder) => {
    const token = await made(store);
    const path = `${folder}/tokens/${token.id}.json`;
    const whole = await Deno.readTextFile(path);
    for (const text of ["", "{}", whole.slice(0, 50), "null", "[]"]) {
      await Deno.writeTextFile(path, text);
      await assertRejects(
        () => store.check(token, use("n"), NOW),
        StoreError,
        path,
      );
    }
  }));

Deno.test("a damaged use counts for nobody, and is refused by its file", () =>
  inStore(async (store, folder) => {
    const token = await made(store, { uses: 2 });
    await claim(folder, await store.check(token, use("n"), NOW), use("n"));
    const path = `${folder}/tokens/${token.id}.use-1`;
    for (const text of ["", "null", "{}", "[1"]) {
      await Deno.writeTextFile(path, text);
      const late = NOW + 5_000; // Only now it matters who used it.
      await assertRejects(
        () => store.check(token, use("n"), late),
        StoreError,
        path,
      );
    }
  }));

Deno.test("requests that make no sense are refused", () =>
  inStore(async (store) => {
    for (
      const request of [{ uses: 0 }, { uses: 1e6 }, { nodePattern: "A/b" }]
    ) {
      await assertRejects(() => made(store, request), StoreError);
    }
    await assertRejects(() => made(store, { identifiers: "ipv4=x" }), Error);
  }));

Deno.test("a pattern has the letters of names", () => {
  for (
    const [pattern, isOne] of [
      ["edge-*", true],
      ["a.b_c", true],
      ["", false],
      ["a?", false],
      ["a/b", false],
      ["a".repeat(201), false],
    ] as const
  ) assertEquals(isNamePattern(pattern), isOne, pattern);
});
