import { assertEquals, assertThrows } from "@std/assert";
import { certificates } from "../../tests/support/certificates/certificates.ts";
import { UsageError } from "./usage_error.ts";
import { adsAccess, type AdsAccessFlags } from "./ads_access.ts";

const FLAGS: AdsAccessFlags = {
  ...{ servers: [], ca: "" },
  ...{ "agent-cert": "", "agent-key": "", "state-dir": "" },
};

const NAMES = { servers: "discovery", ca: "discovery-ca-cert" };

const NOTHING = {
  readFile: (): string => {
    throw new Deno.errors.NotFound("nothing");
  },
  directory: "/nonexistent",
};

function access(more: Partial<AdsAccessFlags>, sources = NOTHING) {
  const machine = { readFile: sources.readFile, environment: () => undefined };
  return adsAccess({ ...FLAGS, ...more }, NAMES, machine, sources.directory);
}

Deno.test("loopback is asked without TLS, also when that is said", () => {
  for (const host of ["127.0.0.1", "[::1]", "localhost", "http://127.9.0.1"]) {
    const { kind, addresses } = access({ servers: [`${host}:15010`] });
    assertEquals([kind, addresses[0]!.port], ["plain", 15010]);
  }
  const [a, b] = access({ servers: ["127.0.0.1:1", "[::1]:2"] }).addresses;
  assertEquals([a, b], [
    { host: "127.0.0.1", port: 1 },
    { host: "::1", port: 2 },
  ]);
});

Deno.test("files are for TLS, and the certificate names the node", async () => {
  const folder = await Deno.makeTempDir();
  const { ca, client } = await certificates();
  const files = {
    ca: `${folder}/ca.pem`,
    "agent-cert": `${folder}/cert.pem`,
    "agent-key": `${folder}/key.pem`,
  };
  await Deno.writeTextFile(files.ca, ca);
  await Deno.writeTextFile(files["agent-cert"], client.cert);
  await Deno.writeTextFile(files["agent-key"], client.key);
  const found = access({ servers: ["127.0.0.1:8091"], ...files });
  assertEquals(found.kind, "files");
  assertEquals(found.kind === "files" && found.node !== "", true);
  const alone = access({ servers: ["a.example:1"], ca: files.ca });
  assertEquals(alone.kind === "files" && alone.node, "");
  await Deno.remove(folder, { recursive: true });
});

Deno.test("a node that has joined is who it has joined as", async () => {
  const folder = await Deno.makeTempDir();
  const text = JSON.stringify({
    ...{ format: "tunnel-agent-state", version: 1, name: "edge-7" },
    ...{ identifiers: "", servers: [] },
  });
  await Deno.writeTextFile(`${folder}/node.json`, text);
  const sources = { readFile: () => text, directory: folder };
  const servers = ["tunnel.example:8091"];
  for (
    const found of [
      access({ servers }, sources),
      access({ servers: ["https://127.0.0.1:8091"] }, sources),
      access({ servers: ["127.0.0.1:8091"], "state-dir": folder }, sources),
    ]
  ) {
    assertEquals(found.kind, "joined");
    assertEquals(found.kind === "joined" && found.node, "edge-7");
  }
  await Deno.remove(folder, { recursive: true });
});

Deno.test("what contradicts itself, or says too little, is refused in one line", () => {
  const far = ["a.example:1"];
  // deno-fmt-ignore: the columns are the point.
  const wrongs: readonly (readonly [Partial<AdsAccessFlags>, string])[] = [
    [{ servers: ["nonsense"] },                       'Cannot use --discovery: saw "nonsense"'],
    [{ servers: ["http://a.example:1"] },             "without TLS only servers on this"],
    [{ servers: ["127.0.0.1:1", ...far] },            "some of its servers"],
    [{ servers: far },                                "this node has not joined"],
    [{ servers: far, "agent-cert": "/c" },            "Cannot use --agent-cert alone"],
    [{ servers: ["http://127.0.0.1:1"], ca: "/c" },   "with http://: there is no TLS"],
    [{ servers: far, ca: "/c", "state-dir": "/s" },   "both say who this node is"],
    [{ servers: far, ca: "/none" },                   "there is no such file"],
  ];
  for (const [flags, message] of wrongs) {
    const error = assertThrows(() => access(flags), UsageError, message);
    assertEquals(error.message.includes("\n"), false);
  }
});
