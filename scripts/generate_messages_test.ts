import { assert, assertEquals, assertThrows } from "@std/assert";
import { current, generated, MODULES } from "./generate_messages.ts";
import { messageModule } from "./message_module.ts";

for (const module of MODULES) {
  Deno.test(`${module.path} is what its .proto files say`, async () => {
    const isCurrent = await current(module) === await generated(module);
    assert(isCurrent, "Run: deno task messages");
  });
}

const MODULE = {
  path: "a/b/module.ts",
  protos: ["a/b/one.proto"],
  codecs: { path: "a/codec.ts", schema: "Schema" },
  fields: "present",
  named: ["Whole_Kind", "Whole_Part"],
} as const;

function moduleOf(...texts: readonly string[]): string {
  const files = texts.map((text, index) =>
    [`${index}.proto`, `syntax = "proto3";\n${text}`] as const
  );
  return messageModule(MODULE, new Map(files));
}

Deno.test("descriptors and types have what the files say, with their rules", () => {
  const source = moduleOf(`package p;
// A whole.
message Whole {
  message Part { uint64 size = 1; }
  enum Kind { NONE = 0; SOME = 1; /* or other */ }
  string name = 1 [(validate.rules).string = {min_len: 1}]; // not empty
  repeated Part parts = 2;
  map<string, Kind> kinds = 3;
}
service Keeper { rpc KeepAll(Whole) returns (stream Whole); }`);
  for (
    const part of [
      'import { Schema } from "../codec.ts";',
      '{ "(validate.rules)": { string: { min_len: 1 } } }',
      'parts: { rule: "repeated", type: "p.Whole.Part", id: 2 }',
      'kinds: { keyType: "string", type: "p.Whole.Kind", id: 3 }',
      '/** A whole. */\nexport type Whole = Of<"p.Whole">;',
      "type Of<Name extends string> = PresentMessage<typeof PACKAGES, Name>;",
      'export type Whole_Part = Of<"p.Whole.Part">;',
      "export const Whole_Kind = {\nNONE: 0,\n",
      'export const Whole = codec("p.Whole");',
      'keepAll: "/p.Keeper/KeepAll",',
    ]
  ) assert(source.includes(part), `${part}\nis not in\n${source}`);
  assertEquals(source.includes("const Whole_Part"), false);
});

Deno.test("two messages cannot have one name", () => {
  assertThrows(
    () => moduleOf("package p; message M {}", "package q; message M {}"),
    Error,
    "q.M needs another name than M",
  );
});

Deno.test("what would be on the wire in another way is not passed over", () => {
  const field = "repeated int32 a = 1 [packed = false];";
  assertThrows(
    () => moduleOf(`package p; message M { ${field} }`),
    TypeError,
    "p.M.a has an option: ",
  );
  assertThrows(
    () => messageModule(MODULE, new Map([["0.proto", "message M {}"]])),
    Error,
    "0.proto is no proto3",
  );
});

Deno.test("a text that is no proto is named", () => {
  assertThrows(() => moduleOf("message {"), Error, "Cannot read 0.proto");
});
