import { assertEquals, assertRejects } from "@std/assert";
import { PrivateFileError } from "../../platform/files/private_files.ts";
import { CertificateAuthority } from "../../platform/pki/authority.ts";
import {
  exportPrivateKey,
  generateKeyPair,
  PkiError,
} from "../../platform/pki/key_pair.ts";
import type { Enrolment } from "../../proto/identity/identity_messages.ts";
import { inMemoryFolder } from "../../tests/support/memory/memory_folder.ts";
import { AgentState, hasJoined } from "./agent_state.ts";

const SERVERS = [{ host: "tunnel.example", port: 8091 }];
const NEXT_YEAR = new Date(Date.now() + 365 * 24 * 3600_000);
const authority = await CertificateAuthority.create({
  commonName: () => "ca",
  notAfter: NEXT_YEAR,
});

async function enrolment(publicKey: CryptoKey): Promise<Enrolment> {
  const encoder = new TextEncoder();
  const certificate = await authority.issue({
    publicKey,
    commonName: "node:edge-7",
    usage: "client",
    notAfter: NEXT_YEAR,
  });
  return {
    node: "edge-7",
    certificate: encoder.encode(certificate),
    authorities: encoder.encode(authority.certificate),
    identifiers: "cidr=10.0.0.0/8",
  };
}

/** A directory that an agent has joined with. */
function inJoined(test: (root: string) => Promise<void>): Promise<void> {
  return inMemoryFolder(async (folder) => {
    const root = `${folder}/agent`;
    const state = await AgentState.open(root);
    const { publicKey } = await state.keys();
    await state.keep(await enrolment(publicKey), SERVERS);
    await test(root);
  });
}

async function read(root: string) {
  return await (await AgentState.open(root)).read();
}

Deno.test("an identity is the same one after it was kept", () =>
  inJoined(async (root) => {
    const found = await read(root);
    assertEquals(found?.node, {
      name: "edge-7",
      identifiers: "cidr=10.0.0.0/8",
      servers: SERVERS,
    });
    assertEquals(found?.certificate?.x509.subject, "CN=node:edge-7");
    assertEquals(found?.authorities.length, 1);
    assertEquals((await Deno.stat(root)).mode! & 0o777, 0o700);
    for (const name of ["key.pem", "cert.pem", "ca.pem", "node.json"]) {
      const { mode } = await Deno.stat(`${root}/${name}`);
      assertEquals(mode! & 0o777, 0o600, name);
    }
  }));

Deno.test("a join that was interrupted goes on with the key it has made", () =>
  inMemoryFolder(async (root) => {
    await Deno.chmod(root, 0o700);
    const keys = await Promise.all(
      [1, 2].map(async () => await (await AgentState.open(root)).keys()),
    );
    const pems = await Promise.all(
      keys.map(({ privateKey }) => exportPrivateKey(privateKey)),
    );
    assertEquals(pems[0], pems[1]);
    assertEquals(hasJoined(root), false);
    assertEquals(await read(root), undefined);
  }));

Deno.test("a certificate may be missing, as its key gets another one", () =>
  inJoined(async (root) => {
    await Deno.remove(`${root}/cert.pem`);
    const found = await read(root);
    assertEquals([found?.node.name, found?.certificate], ["edge-7", undefined]);
  }));

Deno.test("an agent that runs writes a key again that is gone or damaged, and no other", () =>
  inJoined(async (root) => {
    const state = await AgentState.open(root);
    const path = `${root}/key.pem`;
    const keys = await state.keys();
    const pem = await Deno.readTextFile(path);
    assertEquals(await state.restoreKey(keys), false);
    for (const text of ["", pem.slice(0, 60), "else"]) {
      await Deno.writeTextFile(path, text);
      assertEquals(await state.restoreKey(keys), true, text);
      assertEquals(await Deno.readTextFile(path), pem);
      assertEquals((await Deno.stat(path)).mode! & 0o777, 0o600);
    }
    const other = await exportPrivateKey((await generateKeyPair()).privateKey);
    await Deno.writeTextFile(path, other);
    assertEquals(await state.restoreKey(keys), false, "somebody's choice");
    await Deno.remove(path);
    assertEquals(await state.restoreKey(keys), true);
    await Promise.all(
      [path, `${root}/node.json`].map((name) => Deno.remove(name)),
    );
    assertEquals(await state.restoreKey(keys), false, "emptied to join anew");
  }));

const RESTORE = "restore it from a backup; or `tunnel node forget`";
const REMOVE = "remove it, and the agent gets a new one with its key";

// deno-fmt-ignore: the columns are the point.
const DAMAGES: readonly [what: string, file: string, remedy: string, damage: (text: string) => string | undefined][] = [
  ["a key that is gone",           "key.pem",   RESTORE, () => undefined],
  ["an empty key",                 "key.pem",   RESTORE, () => ""],
  ["a key that was cut",           "key.pem",   RESTORE, (text) => text.slice(0, 60)],
  ["no authorities",               "ca.pem",    RESTORE, () => undefined],
  ["authorities that were cut",    "ca.pem",    RESTORE, (text) => text.slice(0, -40)],
  ["an empty certificate",         "cert.pem",  REMOVE,  () => ""],
  ["a certificate that was cut",   "cert.pem",  REMOVE,  (text) => text.slice(0, -40)],
  ["a certificate of another key", "cert.pem",  REMOVE,  () => authority.certificate],
  ["a node that was cut",          "node.json", RESTORE, (text) => text.slice(0, 30)],
  ["an empty node",                "node.json", RESTORE, () => ""],
  ["a node of something else",     "node.json", RESTORE, () => "{}"],
  ["a node of tomorrow's format",  "node.json", RESTORE, (text) => text.replace('"version": 1', '"version": 2')],
  ["a node whose name is a path",  "node.json", RESTORE, (text) => text.replace("edge-7", "../x")],
  ["a node at no place",           "node.json", RESTORE, (text) => text.replace("8091", "80910")],
];

for (const [what, file, remedy, damage] of DAMAGES) {
  Deno.test(`${what} is refused, with its file and what to do`, () =>
    inJoined(async (root) => {
      const path = `${root}/${file}`;
      const text = damage(await Deno.readTextFile(path));
      if (text === undefined) await Deno.remove(path);
      else await Deno.writeTextFile(path, text);
      const before = await listing(root);
      const error = await assertRejects(() => read(root), PrivateFileError);
      assertEquals(error.message.includes(path), true, error.message);
      assertEquals(error.message.includes(remedy), true, error.message);
      assertEquals(await listing(root), before);
    }));
}

async function listing(root: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for await (const { name } of Deno.readDir(root)) {
    found[name] = await Deno.readTextFile(`${root}/${name}`);
  }
  return found;
}

Deno.test("what others could have read or changed is refused", () =>
  inJoined(async (root) => {
    await Deno.chmod(`${root}/key.pem`, 0o644);
    await assertRejects(() => read(root), PrivateFileError, "chmod 0600");
    await Deno.chmod(`${root}/key.pem`, 0o600);
    await Deno.chmod(root, 0o777);
    await assertRejects(() => read(root), PrivateFileError, "chmod 0700");
  }));

Deno.test("a directory with something else in it is not taken over", () =>
  inMemoryFolder(async (root) => {
    await Deno.writeTextFile(`${root}/letters.txt`, "dear");
    await assertRejects(
      () => AgentState.open(root),
      PrivateFileError,
      "letters.txt and no identity",
    );
  }));

Deno.test("a certificate for another's key is not kept as ours", () =>
  inJoined(async (root) => {
    const { publicKey } = await generateKeyPair();
    const state = await AgentState.open(root);
    const before = await listing(root);
    const answer = await enrolment(publicKey);
    await assertRejects(() => state.keep(answer, SERVERS), PkiError);
    assertEquals(await listing(root), before);
  }));

Deno.test("who stands still with an identity keeps nobody waiting for ever", () =>
  inJoined(async (root) => {
    const state = await AgentState.open(root);
    const act = () => Promise.resolve("done");
    {
      using held = await Deno.open(`${root}/lock`, {
        write: true,
        create: true,
      });
      await held.lock(true);
      await assertRejects(
        () => state.exclusively(act, 60),
        PrivateFileError,
        "another process of this node has held it",
      );
    }
    assertEquals(await state.exclusively(act, 0), "done");
  }));

Deno.test("servers that were learned are kept, and what is no list of them is none", () =>
  inJoined(async (root) => {
    const state = await AgentState.open(root);
    assertEquals(await state.readServers(), []);
    const server = {
      serverId: "s2",
      instanceId: "bbbbbbbb",
      address: "b.example:8091",
    };
    await state.keepServers([server]);
    const again = await AgentState.open(root);
    assertEquals(await again.readServers(), [server]);
    const path = `${root}/servers.json`;
    for (const text of ["", "{", '{"length": 1}', "[1, null, {}]"]) {
      await Deno.writeTextFile(path, text);
      assertEquals(await again.readServers(), [], text);
    }
    // Somebody else may have written where to connect.
    await state.keepServers([server]);
    await Deno.chmod(path, 0o666);
    assertEquals(await again.readServers(), []);
  }));
