import { assertEquals, assertThrows } from "@std/assert";
import { Schema } from "./message_codec.ts";
import { GrpcError, StatusCode } from "./status.ts";

const schema = new Schema({
  "a.b": {
    Small: { fields: { text: { type: "string", id: 1 } } },
    Whole: {
      oneofs: { choice: { oneof: ["one", "other"] } },
      fields: {
        wide: { type: "int64", id: 1 },
        bytes: { type: "bytes", id: 2 },
        inner: { type: "Small", id: 3 },
        list: { rule: "repeated", type: "Small", id: 4 },
        named: { keyType: "string", type: "Small", id: 5 },
        one: { type: "Small", id: 6 },
        other: { type: "bool", id: 7 },
      },
    },
  },
});

interface Small {
  readonly text: string;
}

interface Whole {
  readonly wide: string;
  readonly bytes: Uint8Array;
  readonly inner: Small | null;
  readonly list: readonly Small[];
  readonly named: Readonly<Record<string, Small>>;
  readonly one?: Small;
  readonly other?: boolean;
}

const whole = schema.codec<Whole>("a.b.Whole");

Deno.test("what is not on the wire has its default, a message is null", () => {
  const { bytes, ...rest } = whole.decode(new Uint8Array(0));
  assertEquals([...bytes], []);
  assertEquals(rest, { wide: "0", inner: null, list: [], named: {} });
});

Deno.test("what has 64 bits stays exact", () => {
  for (const wide of ["9007199254740993", "-9223372036854775808"]) {
    assertEquals(whole.decode(whole.encode({ wide })).wide, wide);
  }
});

Deno.test("of a choice the last one on the wire is there, alone", () => {
  const both = [
    ...whole.encode({ one: { text: "x" } }),
    ...whole.encode({ other: true }),
  ];
  const { one, other } = whole.decode(Uint8Array.from(both));
  assertEquals([one, other], [undefined, true]);
});

Deno.test("bytes that are no such message are the peer's fault", () => {
  const error = assertThrows(
    () => whole.decode(Uint8Array.of(0x1a, 9)),
    GrpcError,
    "Cannot read a a.b.Whole: ",
  );
  assertEquals(error.code, StatusCode.INVALID_ARGUMENT);
});

Deno.test("a name that no file has is our fault", () => {
  assertEquals(schema.find("a.b.Nobody"), undefined);
  assertThrows(() => schema.type("a.b"), TypeError, "a.b is no message");
});
