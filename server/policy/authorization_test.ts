import { assertEquals, assertThrows } from "@std/assert";
import { certifiedCaller } from "../../tests/support/memory/fake_caller.ts";
import {
  POLICY_BYTES_MAX,
  PolicyError,
  PolicyFile,
  readPolicy,
} from "./authorization.ts";

const OPEN = `
frontends:
  - commonName: "*"
    allow: ["tcp:*:*"]
`;

const mayDial = (file: { current: ReturnType<typeof readPolicy> }) =>
  file.current.evaluate(certifiedCaller("a"), ["n"], {
    protocol: "tcp",
    address: "10.0.0.1:80",
  }).isAllowed;

async function inFile(
  work: (path: string) => Promise<void>,
  name = "policy.yaml",
) {
  const folder = await Deno.makeTempDir({ prefix: "policy-" });
  try {
    await work(`${folder}/${name}`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("a new file counts after a reload, a bad one leaves the old one", () =>
  inFile(async (path) => {
    await Deno.writeTextFile(path, OPEN);
    const file = PolicyFile.load(path);
    assertEquals([mayDial(file), file.reload()], [true, false]);
    for (
      const bad of [
        "",
        "frontends: [",
        "frontends: 7",
        "x".repeat(POLICY_BYTES_MAX + 1),
      ]
    ) {
      await Deno.writeTextFile(path, bad);
      assertThrows(() => file.reload(), PolicyError, path);
      assertEquals(mayDial(file), true);
    }
    await Deno.remove(path);
    assertThrows(() => file.reload(), PolicyError, "there is no such file");
    assertEquals(mayDial(file), true);
    await Deno.writeTextFile(path, "frontends: []");
    assertEquals([file.reload(), mayDial(file)], [true, false]);
  }));

Deno.test("a file may be JSON", () =>
  inFile(async (path) => {
    const entry = { commonName: "*", allow: ["tcp:*:*"] };
    await Deno.writeTextFile(path, JSON.stringify({ frontends: [entry] }));
    assertEquals(mayDial(PolicyFile.load(path)), true);
  }, "policy.json"));

Deno.test("what is no policy is refused with the file's name and the place", () => {
  const refused = (path: string, text: string) =>
    assertThrows(() => readPolicy(path, text), PolicyError).message;
  assertEquals(
    refused("p.yaml", "frontends:\n  - commonName: a\n    allow: [tcp:*:*"),
    "Cannot use the policy file p.yaml: it is not YAML: Cannot read flow " +
      "collection: unexpected end of the stream within a flow collection at " +
      "line 4, column 1",
  );
  assertEquals(
    refused("p.yaml", "frontends:\n  - commonName: a\n    allow: [tcp:a]"),
    "Cannot use the policy file p.yaml: line 3: frontends[0].allow[0]: Cannot read " +
      'the rule "tcp:a", column 6: saw no ports, wanted ":" and ports; ' +
      "write :443, :1-1023, :80,443 or :*",
  );
  assertEquals(
    refused("p.txt", ""),
    "Cannot use the policy file p.txt: its name ends in neither .json nor .yaml",
  );
  assertThrows(
    () => PolicyFile.load("/none/p.yaml"),
    PolicyError,
    "/none/p.yaml",
  );
});
