import { assertEquals, assertThrows } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import {
  BodyFraming,
  type BodyLength,
  bodyLength,
  CHUNK_LINE_BYTES_MAX,
  NO_BODY,
  TRAILER_BYTES_MAX,
} from "./framing.ts";
import { Fields } from "./fields.ts";
import { MessageError } from "./refusal.ts";

const encode = (text: string) => new TextEncoder().encode(text);

function lengthOf(...lines: string[]): BodyLength {
  return bodyLength(new Fields(lines, 400), NO_BODY);
}

Deno.test("bodyLength() knows the three ways to end a body", () => {
  assertEquals(lengthOf(), NO_BODY);
  assertEquals(lengthOf("Content-Length: 12"), { kind: "bytes", bytes: 12 });
  assertEquals(lengthOf("transfer-encoding: Chunked"), { kind: "chunked" });
});

// deno-fmt-ignore: the columns are the point.
const AMBIGUOUS: readonly [name: string, ...lines: string[]][] = [
  ["two lengths",               "Content-Length: 5", "Content-Length: 6"],
  ["the same length twice",     "Content-Length: 5", "content-length: 5"],
  ["a list of lengths",         "Content-Length: 5, 5"],
  ["a length with a sign",      "Content-Length: +5"],
  ["a length in hex",           "Content-Length: 0x5"],
  ["a length that is empty",    "Content-Length:"],
  ["a length beyond numbers",   "Content-Length: 99999999999999999999"],
  ["a length and chunks",       "Content-Length: 5", "Transfer-Encoding: chunked"],
  ["chunks twice",              "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
  ["another coding",            "Transfer-Encoding: gzip, chunked"],
  ["chunks that are not last",  "Transfer-Encoding: chunked, identity"],
  ["chunks with something",     "Transfer-Encoding: chunked;x"],
  ["chunks with a strange tab", "Transfer-Encoding: \x0bchunked"],
];

for (const [name, ...lines] of AMBIGUOUS) {
  Deno.test(`bodyLength() refuses ${name}`, () => {
    const error = assertThrows(() => lengthOf(...lines), MessageError);
    assertEquals(error.status, 400);
  });
}

const CHUNKED = "5\r\nhello\r\nA;ext=1\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n";

for (const kind of ["chunked", "bytes"] as const) {
  Deno.test(`BodyFraming finds the end of a body in ${kind} however it is cut`, async () => {
    await forAll(200, (random) => {
      const body = kind === "chunked" ? CHUNKED : "x".repeat(40);
      const bytes = encode(`${body}GET / HTTP/1.1\r\n`);
      const framing = new BodyFraming(
        kind === "chunked" ? { kind } : { kind, bytes: 40 },
      );
      let taken = 0;
      while (!framing.isDone) {
        const size = 1 + random.below(12);
        taken += framing.take(bytes.subarray(taken, taken + size));
      }
      assertEquals(taken, body.length);
      assertEquals(framing.take(bytes.subarray(taken)), 0);
    });
  });
}

Deno.test("BodyFraming takes everything of a body that ends with its connection", () => {
  const framing = new BodyFraming({ kind: "untilClose" });
  assertEquals(framing.take(encode("0\r\n\r\n")), 5);
  assertEquals([framing.isDone, framing.mayEnd], [false, true]);
});

Deno.test("BodyFraming knows whether a body is whole", () => {
  const framing = new BodyFraming({ kind: "chunked" });
  framing.take(encode("5\r\nhel"));
  assertEquals(framing.mayEnd, false);
  framing.take(encode("lo\r\n0\r\n\r\n"));
  assertEquals(framing.mayEnd, true);
});

// deno-fmt-ignore: the columns are the point.
const BROKEN: readonly [name: string, bytes: string][] = [
  ["no size",                   "\r\n"],
  ["a size that is none",       "xyz\r\n"],
  ["a size with a sign",        "-5\r\n"],
  ["a size with a prefix",      "0x5\r\nhello\r\n"],
  ["a size behind a blank",     " 5\r\nhello\r\n"],
  ["a size beyond numbers",     "fffffffffffffffff\r\n"],
  ["a line without CR",         "5\nhello\r\n"],
  ["a bare LF in an extension", "5;a\nb\r\nhello"],
  ["a bare CR in an extension", "5;a\rb\r\nhello"],
  ["a chunk longer than said",  "5\r\nhello!\r\n"],
  ["a chunk without an end",    "5\r\nhello5\r\n"],
  ["a trailer that is none",    "0\r\nno colon\r\n\r\n"],
  ["a folded trailer",          "0\r\na: b\r\n c\r\n\r\n"],
  ["a line without end",        "5;" + "x".repeat(CHUNK_LINE_BYTES_MAX)],
  ["trailers without end",      "0\r\n" + "a: b\r\n".repeat(TRAILER_BYTES_MAX / 6 + 1)],
];

for (const [name, bytes] of BROKEN) {
  Deno.test(`BodyFraming refuses chunks with ${name}`, () => {
    for (const size of [1, bytes.length]) {
      const framing = new BodyFraming({ kind: "chunked" });
      assertThrows(() => {
        for (let at = 0; at < bytes.length; at += size) {
          framing.take(encode(bytes.slice(at, at + size)));
        }
      }, MessageError);
    }
  });
}
