import { assert, assertEquals, assertThrows } from "@std/assert";
import { deflateSync, gzipSync } from "node:zlib";
import { forAll } from "../../tests/support/memory/prng.ts";
import {
  encodingOf,
  frameMessage,
  MessageReader,
  type MessageReaderOptions,
} from "./message_reader.ts";
import { Metadata } from "./metadata.ts";
import { GrpcError, StatusCode } from "./status.ts";
import { formatTimeout, parseTimeout } from "./call.ts";

function collect(
  options: Omit<MessageReaderOptions, "onMessage"> = {},
): { reader: MessageReader; messages: Uint8Array[] } {
  const messages: Uint8Array[] = [];
  const reader = new MessageReader({
    ...options,
    onMessage: (message) => messages.push(message),
  });
  return { reader, messages };
}

function compressed(bytes: Uint8Array): Uint8Array {
  const framed = frameMessage(bytes);
  framed[0] = 1;
  return framed;
}

function codeOf(run: () => void): number {
  return assertThrows(run, GrpcError).code;
}

Deno.test("a prefix holds lengths up to 32 bits", () => {
  assertEquals(
    [...frameMessage(Uint8Array.of(7, 8))],
    [0, 0, 0, 0, 2, 7, 8],
  );
  const prefix = Uint8Array.of(0, 0xff, 0xfe, 0xfd, 0xfc);
  assertThrows(
    () => collect().reader.push(prefix),
    GrpcError,
    `a message of ${0xfffefdfc} bytes`,
  );
});

Deno.test("a message in one piece is lent to whoever keeps nothing", () => {
  const chunk = Uint8Array.of(
    ...frameMessage(Uint8Array.of(1, 2)),
    ...frameMessage(new Uint8Array(0)),
    ...compressed(new Uint8Array(gzipSync(Uint8Array.of(3)))),
    ...frameMessage(Uint8Array.of(4, 5)),
  );
  const { reader, messages } = collect({ lends: true, encoding: "gzip" });
  reader.push(chunk.subarray(0, -1));
  reader.push(chunk.subarray(-1));
  assertEquals(messages.map((message) => [...message]), [
    [1, 2],
    [],
    [3],
    [4, 5],
  ]);
  assertEquals(
    messages.map(({ buffer }) => buffer === chunk.buffer),
    [true, true, false, false],
  );
});

Deno.test("every cutting of a body gives the same messages", async () => {
  await forAll(200, (prng) => {
    const sent = Array.from(
      { length: prng.below(6) },
      () => prng.bytes(prng.pick([0, 1, 5, prng.below(9000)])),
    );
    const body = new Uint8Array(
      sent.flatMap((message) => [...frameMessage(message)]),
    );
    const { reader, messages } = collect();
    const copies: Uint8Array[] = [];
    const lender = new MessageReader({
      lends: true,
      onMessage: (message) => copies.push(message.slice()),
    });
    for (let offset = 0; offset < body.length;) {
      const bytes = 1 + prng.below(prng.pick([2, 7, 5000]));
      // A chunk is only valid during the call: spoil it afterwards.
      const chunk = body.slice(offset, offset + bytes);
      reader.push(chunk);
      lender.push(chunk);
      chunk.fill(0xee);
      offset += bytes;
    }
    reader.end();
    assertEquals(messages, sent);
    assertEquals(copies, sent);
  });
});

Deno.test("a body that ends inside a message is broken, at every byte of it", () => {
  const body = frameMessage(Uint8Array.of(1, 2, 3));
  for (let cut = 1; cut < body.length; cut++) {
    const { reader, messages } = collect();
    reader.push(body.subarray(0, cut));
    assertEquals(messages, []);
    assertEquals(codeOf(() => reader.end()), StatusCode.INTERNAL);
  }
});

Deno.test("a message over the limit is refused by its prefix, naming both sizes", () => {
  const { reader, messages } = collect({ messageBytesMax: 10 });
  reader.push(frameMessage(new Uint8Array(10)));
  assertEquals(messages.length, 1);
  const error = assertThrows(
    () => reader.push(frameMessage(new Uint8Array(11)).subarray(0, 5)),
    GrpcError,
    "Cannot read a message of 11 bytes: at most 10 are accepted",
  );
  assertEquals(error.code, StatusCode.RESOURCE_EXHAUSTED);
});

Deno.test("an announced message takes no memory before it arrives", () => {
  const { reader } = collect();
  reader.push(Uint8Array.of(0, 0, 0x40, 0, 0));
  assertEquals(reader.bufferBytes, 0);
  reader.push(new Uint8Array(100));
  assert(reader.bufferBytes <= 4096, `${reader.bufferBytes}`);
  for (let count = 0; count < 1000; count++) reader.push(new Uint8Array(100));
  assert(reader.bufferBytes <= 2 * 100_100, `${reader.bufferBytes}`);
});

Deno.test("gzip is read when it was declared", () => {
  const text = new Uint8Array(5000).fill(65);
  const { reader, messages } = collect({ encoding: "gzip" });
  reader.push(compressed(new Uint8Array(gzipSync(text))));
  reader.push(frameMessage(Uint8Array.of(1)));
  assertEquals(messages, [text, Uint8Array.of(1)]);
});

Deno.test("a gzip message may unfold to the limit and no further", () => {
  for (const [bytes, isAccepted] of [[1000, true], [1001, false]] as const) {
    const bomb = compressed(new Uint8Array(gzipSync(new Uint8Array(bytes))));
    const { reader, messages } = collect({
      encoding: "gzip",
      messageBytesMax: 1000,
    });
    if (isAccepted) {
      reader.push(bomb);
      assertEquals(messages[0]!.length, bytes);
    } else {
      const code = codeOf(() => reader.push(bomb));
      assertEquals(code, StatusCode.RESOURCE_EXHAUSTED);
    }
  }
});

Deno.test("compression that was not declared, not known or not valid is refused", () => {
  const bytes = new Uint8Array(deflateSync(new Uint8Array(10)));
  const cases = [
    ["identity", StatusCode.INTERNAL],
    ["deflate", StatusCode.UNIMPLEMENTED],
    ["gzip", StatusCode.INTERNAL],
  ] as const;
  for (const [encoding, code] of cases) {
    const { reader } = collect({ encoding });
    assertEquals(codeOf(() => reader.push(compressed(bytes))), code, encoding);
  }
});

Deno.test("a flag that is neither 0 nor 1 is refused", () => {
  const { reader } = collect();
  const code = codeOf(() => reader.push(Uint8Array.of(2, 0, 0, 0, 0)));
  assertEquals(code, StatusCode.INTERNAL);
});

Deno.test("the encoding is what the metadata declares", () => {
  assertEquals(encodingOf(new Metadata()), "identity");
  assertEquals(encodingOf(new Metadata({ "grpc-encoding": "gzip" })), "gzip");
});

Deno.test("every unit of grpc-timeout is read as milliseconds", () => {
  assertEquals(parseTimeout("2H"), 7_200_000);
  assertEquals(parseTimeout("3M"), 180_000);
  assertEquals(parseTimeout("4S"), 4_000);
  assertEquals(parseTimeout("5m"), 5);
  assertEquals(parseTimeout("2500u"), 2.5);
  assertEquals(parseTimeout("500000n"), 0.5);
  assertEquals(parseTimeout("0n"), 0);
  assertEquals(parseTimeout("99999999H"), 99_999_999 * 3_600_000);
});

Deno.test("what is no grpc-timeout is not read", () => {
  const broken = ["", "5", "m", "-5m", "+5m", "5 m", "5s", "5ms", "1.5S"];
  for (const text of [...broken, "123456789m", " 5m", "5m\n", "٥m"]) {
    assertEquals(parseTimeout(text), undefined, JSON.stringify(text));
  }
});

Deno.test("a timeout is written in the exactest unit of eight digits, rounded up", () => {
  assertEquals(formatTimeout(1_500), "1500m");
  assertEquals(formatTimeout(0.2), "1m");
  assertEquals(formatTimeout(99_999_999), "99999999m");
  assertEquals(formatTimeout(100_000_000), "100000S");
  assertEquals(formatTimeout(100_000_001), "100001S");
  assertEquals(formatTimeout(100_000_000 * 1_000), "1666667M");
  assertEquals(formatTimeout(1e13), "2777778H");
  assertEquals(formatTimeout(1e18), "99999999H");
  assertEquals(formatTimeout(0), "0m");
  assertEquals(formatTimeout(-5), "0m");
});

Deno.test("what is written is read back, never shorter and hardly longer", async () => {
  await forAll(200, (prng) => {
    const timeoutMs = (prng.below(2 ** 31) + 1) * 10 ** prng.below(5) / 100;
    const read = parseTimeout(formatTimeout(timeoutMs))!;
    assert(read >= timeoutMs && read <= timeoutMs * 1.001 + 1, `${timeoutMs}`);
  });
});
