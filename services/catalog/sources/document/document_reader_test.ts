import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import { forAll, type Prng } from "../../../../tests/support/memory/prng.ts";
import {
  CatalogDocumentError,
  readCatalogDocument,
} from "./catalog_document.ts";
import { cutDocument } from "./document_cut.ts";
import { DocumentReader } from "./document_reader.ts";

const YAML = `# ours
services:
- name: web   # the first
  ports:
  - {name: http, port: 80}
  - {name: metrics, port: 9100}
  endpoints:
  - {address: 10.0.0.7, ports: {http: 8080}, node: node1}

# said of db
- name: db
  ports: [{port: 5432}]
  endpoints:
  - address: "fd00::53"
    via: {host:
 node2}
-
  name: idle
  ports:
  - port: 7
`;

const JSON_TEXT = JSON.stringify(
  {
    services: [
      {
        name: "web",
        ports: [{ port: 80, appProtocol: 'a"}]\\' }],
        endpoints: [{ address: "10.0.0.1" }],
      },
      { name: "db", ports: [{ port: 5_432 }] },
      { name: "idle", ports: [{ port: 7 }] },
    ],
  },
  undefined,
  2,
);

/** What came of a document, a refusal included. */
function outcome(read: (text: string) => unknown, text: string) {
  try {
    return read(text);
  } catch (error) {
    assert(error instanceof CatalogDocumentError, `${error}`);
    return error.message;
  }
}

function assertAsWhole(reader: DocumentReader, text: string) {
  assertEquals(
    outcome((text) => reader.read(text), text),
    outcome(readCatalogDocument, text),
    text,
  );
}

for (const [language, text] of [["yaml", YAML], ["json", JSON_TEXT]] as const) {
  Deno.test(`${language}: what says the same is the same object`, () => {
    assertEquals(cutDocument(text)?.services.length, 3);
    const reader = new DocumentReader();
    const before = reader.read(text);
    assertEquals(before, readCatalogDocument(text));
    const after = reader.read(text.replace("5432", "5433"));
    const [web, db, idle] = after.services;
    assertStrictEquals(web, before.services[0]);
    assertStrictEquals(
      after.endpoints[0]!.endpoints,
      before.endpoints[0]!.endpoints,
    );
    assertStrictEquals(idle, before.services[2]);
    assertEquals(db!.ports[0]!.port, 5_433);
  });

  Deno.test(`${language}: piece by piece or as a whole comes to the same`, async () => {
    await forAll(400, (prng) => {
      const reader = new DocumentReader();
      reader.read(text);
      assertAsWhole(reader, spoiled(prng, text));
      assertAsWhole(reader, text);
    });
  });
}

/** Takes out, doubles or puts in what means something in either language. */
function spoiled(prng: Prng, text: string): string {
  let spoiled = text;
  for (let count = 1 + prng.below(3); count > 0; count--) {
    const at = prng.below(spoiled.length);
    const end = at + prng.below(prng.pick([2, 10, 80]));
    const piece = prng.pick([
      "",
      spoiled.slice(at, end).repeat(2),
      ...['"', "'", "{", "}", "[", "]", ",", "\\", ":", "\n", "\r\n", "\t"],
      ..." |-#".split(""),
      ...["- ", "\n- ", "\n  - ", "\n- name: new\n", "&a ", "*a", "\n---\n"],
      ...["services:", "? ", "|\n", ">-\n  ", "!!str "],
    ]);
    spoiled = spoiled.slice(0, at) + piece + spoiled.slice(end);
  }
  return spoiled;
}

const LARGE = JSON.stringify({
  services: [{
    name: "web",
    endpoints: Array.from(
      { length: 100 },
      (_, index) => ({
        address: `10.0.0.${index}`,
        ports: { a: 80 },
        node: `"}],[{\\${index}`,
      }),
    ),
    ports: [{ name: "a", port: 80 }, { name: "b", port: 81 }],
  }, { name: "db", ports: [{ port: 5_432 }] }],
});

Deno.test("of a large service, endpoints that say the same are the same objects", () => {
  const reader = new DocumentReader();
  const before = reader.read(LARGE);
  assertEquals(before, readCatalogDocument(LARGE));
  const text = LARGE.replace("10.0.0.7", "10.0.1.7");
  const after = reader.read(text);
  assertEquals(after, readCatalogDocument(text));
  assertStrictEquals(after.services[0], before.services[0]);
  const changed = after.endpoints[0]!.endpoints.filter((endpoint, index) =>
    endpoint !== before.endpoints[0]!.endpoints[index]
  );
  assertEquals(changed.map(({ address }) => address), ["10.0.1.7"]);
});

Deno.test("endpoints of a large service are read again when its ports are others", () => {
  const text = LARGE.replaceAll(',"ports":{"a":80}', "");
  const reader = new DocumentReader();
  reader.read(text);
  assertAsWhole(reader, text.replace('"port":81', '"port":82'));
});

Deno.test("a large service piece by piece or as a whole comes to the same", async () => {
  await forAll(400, (prng) => {
    const reader = new DocumentReader();
    reader.read(LARGE);
    assertAsWhole(reader, spoiled(prng, LARGE));
    assertAsWhole(reader, LARGE);
  });
});

Deno.test("what is unusual about a large service is not cut, or not well", () => {
  const first = '{"name":"web","endpoints":[';
  for (
    const [from, to] of [
      [first, `{"name":"web","endpoints":[],"endpoints":[`],
      [first, `{"endpoint\\u0073":[],"name":"web","endpoints":[`],
      [first, `${first},`],
      [first, `${first}null,`],
      [first, `${first}[],`],
      [first, `{"name":"web","endpoints":7,"more":[`],
      ["}],", "},],"],
      ["}],", "}] ,"],
      ["}],", "}]"],
      ["}],", "}},"],
    ] as const
  ) {
    const text = LARGE.replace(from, to);
    assert(text !== LARGE, to);
    const reader = new DocumentReader();
    reader.read(LARGE);
    assertAsWhole(reader, text);
  }
});

Deno.test("what cannot be cut is read as a whole", () => {
  const a = "- {name: a, ports: [{port: 80}]}";
  const shared =
    "services:\n- {name: a, ports: &p [{port: 80}]}\n- {name: b, ports: *p}\n";
  const texts = [
    shared,
    `%YAML 1.2\n---\nservices:\n${a}\n`,
    `services:\n${a}\n...\n`,
    `services:\n  ${a}\n# nothing\n`,
    `{services: [{name: a, ports: [{port: 80}]}]}`,
    `{"services": [{"name": "a", "ports": [{"port": 80}]}], }`,
    "services: [{name: a, ports: [{port: 80}]}]",
    "services: []",
    '{"services": []}',
    `services:\n${a}\nother: 1\n`,
    `services:\n${a}\n${a}\n`,
    `services:\n- 'a\n- b'\n`,
    `services:\n${a}\r\n- {name: b, ports: [{port: 81}]}\r\n`,
    "",
  ];
  for (const text of texts) {
    assertAsWhole(new DocumentReader(), text);
  }
});

Deno.test("a refused document forgets nothing of the good one", () => {
  const reader = new DocumentReader();
  const before = reader.read(YAML);
  outcome((text) => reader.read(text), YAML.replace("port: 7", "prt: 7"));
  const after = reader.read(YAML);
  assertStrictEquals(after.services[0], before.services[0]);
});
