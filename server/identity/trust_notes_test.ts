import { assertEquals } from "@std/assert";
import { memoryFolder } from "../../tests/support/memory/memory_folder.ts";
import {
  createAuthorities,
  rotateAuthority,
  trustedBy,
} from "./authorities.ts";
import { type NodeRecord, NodeStore } from "./node_store.ts";
import { DirectoryStore } from "../../neighbours/store/directory_store.ts";
import { TrustNotes } from "./authority_step.ts";
import { authorityIdOf } from "../../proto/identity/authority_ids.ts";

const KEY = "aa".repeat(32);
const RECORD: NodeRecord = {
  name: "gw",
  publicKeySha256: KEY,
  state: "approved",
  identifiers: "",
  joinedAt: "2030-01-01T00:00:00Z",
  tokenId: "0011223344556677",
  joinedFrom: "10.0.0.7:1",
};

Deno.test("only a node in good standing is written down as knowing an authority", async () => {
  const root = memoryFolder();
  const { state } = await DirectoryStore.openOrCreate(root, createAuthorities);
  const authorities = await rotateAuthority(state);
  const nodes = new NodeStore(state);
  const notes = new TrustNotes({ nodes, authorities: () => authorities });
  const ids = trustedBy(authorities).map(authorityIdOf).sort();
  const noted = async (record: NodeRecord, key: string) => {
    await state.transact((change) => nodes.write(record, change));
    await notes.note("gw", key, ids);
    return nodes.read("gw")?.trusts;
  };
  assertEquals(ids.length, 2);
  assertEquals(await noted({ ...RECORD, state: "revoked" }, KEY), undefined);
  // A key that the name had before the node was forgotten, and joined anew.
  assertEquals(await noted(RECORD, "bb".repeat(32)), undefined);
  assertEquals(await noted(RECORD, KEY), ids);
  await Deno.remove(root, { recursive: true });
});
