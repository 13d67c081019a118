import { assert, assertEquals, assertRejects } from "@std/assert";
import {
  certificateFacts,
  readCertificates,
} from "../../platform/pki/certificate.ts";
import {
  exportPrivateKey,
  generateKeyPair,
} from "../../platform/pki/key_pair.ts";
import {
  inMemoryFolder,
  memoryFolder,
} from "../../tests/support/memory/memory_folder.ts";
import {
  activateAuthority,
  type Authorities,
  createAuthorities,
  issuerOf,
  loadAuthorities,
  retireAuthority,
  rotateAuthority,
  trustedBy,
} from "./authorities.ts";
import {
  ensureServerLeaf,
  issueNodeCertificate,
  SERVER_LEAF_LIFE_MS,
} from "./leaf_certificates.ts";
import { DirectoryStore } from "../../neighbours/store/directory_store.ts";
import { StoreError } from "../../neighbours/store/store_error.ts";
import { type NodeRecord, NodeStore } from "./node_store.ts";
import { noteTrust } from "./authority_step.ts";
import { authorityIdOf } from "../../proto/identity/enrolment.ts";

function inState(test: (state: DirectoryStore) => Promise<void>) {
  return inMemoryFolder(async (folder) =>
    await test(
      (await DirectoryStore.openOrCreate(folder, createAuthorities)).state,
    )
  );
}

async function leafOf(authorities: Authorities) {
  const { publicKey } = await generateKeyPair();
  const { pem } = await issueNodeCertificate(
    authorities,
    "n",
    publicKey,
    Date.now(),
    60_000,
  );
  return certificateFacts(pem).x509;
}

Deno.test("a change goes through three steps, and certificates of both hold", () =>
  inState(async (state) => {
    const before = await loadAuthorities(state);
    const old = await leafOf(before);
    const announced = await rotateAuthority(state);
    assertEquals(announced.current.certificate, before.current.certificate);
    const activated = await activateAuthority(state);
    assertEquals(activated.current.certificate, announced.next!.certificate);
    assert(issuerOf(activated, old) === activated.previous);
    assert(issuerOf(announced, await leafOf(activated)) !== undefined);
    const retired = await retireAuthority(state);
    assertEquals(issuerOf(retired, old), undefined);
    assertEquals(readCertificates(retired.bundle).length, 1);
    assertEquals([...Deno.readDirSync(state.path("ca"))].length, 3);
  }));

Deno.test("the bundle begins with the authority that issues", () =>
  inState(async (state) => {
    const first = ({ bundle, current }: Authorities) =>
      bundle.startsWith(current.certificate);
    assert(first(await rotateAuthority(state)));
    const activated = await activateAuthority(state);
    assert(first(activated));
    assertEquals(
      await Deno.readTextFile(state.path("ca/bundle.crt")),
      activated.bundle,
    );
  }));

Deno.test("the old authority's key is gone once the next one issues", () =>
  inState(async (state) => {
    const { current } = await loadAuthorities(state);
    await rotateAuthority(state);
    await activateAuthority(state);
    const id = current.facts.publicKeySha256.slice(0, 16);
    const left = await Deno.readTextFile(state.path(`ca/${id}.pem`));
    assertEquals(left, current.certificate);
  }));

Deno.test("a node that knows the old authority can verify leaves of the new one", () =>
  inState(async (state) => {
    const before = await loadAuthorities(state);
    await rotateAuthority(state);
    const { chain, current } = await activateAuthority(state);
    const bridge = readCertificates(chain).find(({ x509 }) =>
      x509.subject === current.facts.x509.subject &&
      x509.issuer !== x509.subject
    );
    assert(bridge!.x509.verify(before.current.facts.x509.publicKey));
    const leaf = await leafOf({ ...before, current });
    assert(leaf.verify(bridge!.x509.publicKey));
  }));

Deno.test("steps out of order are refused with the right one", () =>
  inState(async (state) => {
    const refuse = async (step: Promise<unknown>, words: string) => {
      const error = await assertRejects(() => step, StoreError, words);
      assertEquals(error.tunnelCode, "TUN327");
    };
    await refuse(activateAuthority(state), "no next authority");
    await refuse(retireAuthority(state), "no previous authority");
    await rotateAuthority(state);
    await refuse(rotateAuthority(state), "waits to be activated");
    await activateAuthority(state);
    await refuse(rotateAuthority(state), "`tunnel ca retire` first");
  }));

/** As servers had it that forwarded nothing. */
async function forServingOnly({ current, chain }: Authorities) {
  const { publicKey, privateKey } = await generateKeyPair();
  const leaf = await current.issue({
    publicKey,
    commonName: "tunnel-server",
    names: ["tunnel-server", "a.b"]
      .map((value) => ({ type: "dns" as const, value })),
    usage: "server",
    notAfter: new Date(Date.now() + SERVER_LEAF_LIFE_MS),
  });
  return await exportPrivateKey(privateKey) + leaf + chain;
}

Deno.test("the server's leaf is issued anew when it should be, and only then", () =>
  inState(async (state) => {
    let authorities = await loadAuthorities(state);
    const ensure = (names: string[], nowMs = Date.now()) =>
      ensureServerLeaf(state, authorities, names, nowMs);
    assertEquals(await ensure(["10.0.0.1"]), "there was none");
    assertEquals(await ensure(["10.0.0.1"]), undefined);
    assertEquals(await ensure(["a.b", "::1"]), "its names have changed");
    assertEquals(await ensure(["a.b", "::1"]), undefined);
    const later = Date.now() + SERVER_LEAF_LIFE_MS * 0.7;
    assertEquals(
      await ensure(["a.b", "::1"], later),
      "most of its life was over",
    );
    const path = state.path("server.pem");
    const pem = await Deno.readTextFile(path);
    await Deno.writeTextFile(path, pem.slice(0, 300));
    assertEquals(await ensure(["a.b"]), "its file was damaged");
    await Deno.writeTextFile(path, await forServingOnly(authorities));
    assertEquals(
      await ensure(["a.b"]),
      "servers could not call others with it",
    );
    await Deno.truncate(path);
    assertEquals(await ensure(["a.b"]), "there was none");
    await Deno.chmod(path, 0o640);
    await assertRejects(() => ensure(["a.b"]), StoreError, "wanted 0600");
    await Deno.chmod(path, 0o600);
    authorities = await rotateAuthority(state);
    assertEquals(await ensure(["a.b"]), undefined);
    authorities = await activateAuthority(state);
    assertEquals(await ensure(["a.b"]), "another authority issues now");
    authorities = await retireAuthority(state);
    assertEquals(await ensure(["a.b"]), "the authorities have changed");
  }));

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
  const notes = { nodes, authorities: () => authorities };
  const ids = trustedBy(authorities).map(authorityIdOf).sort();
  const noted = async (record: NodeRecord, key: string) => {
    await state.transact((change) => nodes.write(record, change));
    await noteTrust(notes, "gw", key, ids);
    return nodes.read("gw")?.trusts;
  };
  assertEquals(ids.length, 2);
  assertEquals(await noted({ ...RECORD, state: "revoked" }, KEY), undefined);
  // A key that the name had before the node was forgotten, and joined anew.
  assertEquals(await noted(RECORD, "bb".repeat(32)), undefined);
  assertEquals(await noted(RECORD, KEY), ids);
  await Deno.remove(root, { recursive: true });
});
