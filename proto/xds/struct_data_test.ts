import { assertEquals, assertThrows } from "@std/assert";
import { GrpcError } from "../grpc/status.ts";
import { Struct, type Value } from "./xds_messages.ts";
import {
  plainOf,
  STRUCT_DEPTH_MAX,
  STRUCT_SIZE_MAX,
  structOf,
} from "./struct_data.ts";

const over = (data: Record<string, unknown>) =>
  plainOf(Struct.decode(Struct.encode(structOf(data))));

Deno.test("what JSON can say survives the way over", () => {
  const data = {
    text: "é",
    empty: "",
    zero: 0,
    half: -0.5,
    no: false,
    nothing: null,
    list: [1, "two", [true, null], {}],
    object: { a: { b: [] } },
  };
  assertEquals(over(data), data);
  assertEquals(over({}), {});
});

Deno.test("what JSON leaves out is left out", () => {
  assertEquals(over({ a: undefined, b: () => 1, c: [undefined, 1] }), {
    c: [null, 1],
  });
});

Deno.test("members have one order on the wire", () => {
  const one = Struct.encode(structOf({ b: { d: 1, c: 2 }, a: 3 }));
  const other = Struct.encode(structOf({ a: 3, b: { c: 2, d: 1 } }));
  assertEquals(one, other);
});

Deno.test("a key that JavaScript knows is a key like any other", () => {
  const data = JSON.parse('{"__proto__": {"polluted": true}, "toString": 1}');
  const read = over(data);
  assertEquals(Object.keys(read).sort(), ["__proto__", "toString"]);
  assertEquals(Object.getPrototypeOf(read), Object.prototype);
  assertEquals("polluted" in read, false);
});

Deno.test("a struct is read to its deepest level, and no deeper", () => {
  const nested = (levels: number): Struct => {
    let value: Value = { stringValue: "x" };
    for (let level = 1; level < levels; level++) {
      value = level % 2 === 0
        ? { listValue: { values: [value] } }
        : { structValue: { fields: { k: value } } };
    }
    return { fields: { k: value } };
  };
  plainOf(nested(STRUCT_DEPTH_MAX));
  const error = assertThrows(
    () => plainOf(nested(STRUCT_DEPTH_MAX + 1)),
    GrpcError,
    "more than 16 levels deep",
  );
  assertEquals(error.code, 8);
});

Deno.test("bytes of a struct that is endlessly deep are refused", () => {
  // value { struct_value { fields { value: … } } }, from the inside.
  let bytes: Uint8Array = Uint8Array.fromHex("0a021200");
  for (let level = 0; level < 500; level++) {
    bytes = field(1, field(2, field(5, bytes)));
  }
  assertThrows(() => Struct.decode(bytes), GrpcError, "max depth");
});

Deno.test("a struct has so many characters and values, and no more", () => {
  // One for the value, two for the key.
  plainOf(structOf({ ab: "x".repeat(STRUCT_SIZE_MAX - 3) }));
  for (
    const data of [
      { ab: "x".repeat(STRUCT_SIZE_MAX - 2) },
      { ["k".repeat(STRUCT_SIZE_MAX)]: true },
      { list: new Array(STRUCT_SIZE_MAX).fill(null) },
    ]
  ) {
    const error = assertThrows(() => plainOf(structOf(data)), GrpcError);
    assertEquals(error.code, 8);
  }
});

function field(number: number, bytes: Uint8Array): Uint8Array {
  const head = [number << 3 | 2];
  let rest = bytes.length;
  for (; rest > 0x7f; rest >>>= 7) head.push(rest & 0x7f | 0x80);
  return Uint8Array.of(...head, rest, ...bytes);
}
