import { assertEquals } from "@std/assert";
import { AuditBuffer, CHUNK_BYTES } from "./audit_buffer.ts";

const encode = (text: string) => new TextEncoder().encode(text);

/** All that waits, piece by piece. */
function drain(buffer: AuditBuffer): string[] {
  const texts: string[] = [];
  for (
    let chunk = buffer.first();
    chunk !== undefined;
    chunk = buffer.first()
  ) {
    texts.push(new TextDecoder().decode(chunk.bytes.subarray(0, chunk.used)));
    buffer.shift();
  }
  return texts;
}

Deno.test("lines leave whole and in order, in pieces of bounded size", () => {
  const buffer = new AuditBuffer(1_000_000, 40);
  const lines = Array.from({ length: 20 }, (_, n) => `line ${n} é✓\n`);
  for (const line of lines) assertEquals(buffer.push(encode(line)), true);
  const bytes = encode(lines.join("")).length;
  assertEquals([buffer.lines, buffer.bytes], [20, bytes]);
  const pieces = drain(buffer);
  assertEquals(pieces.join(""), lines.join(""));
  for (const piece of pieces) {
    assertEquals(encode(piece).length <= 40, true);
    assertEquals(piece.endsWith("\n"), true);
  }
  assertEquals([buffer.lines, buffer.bytes], [0, 0]);
});

Deno.test("a piece that is being written gets no more lines", () => {
  const buffer = new AuditBuffer(1_000);
  buffer.push(encode("a\n"));
  const first = buffer.first()!;
  buffer.push(encode("b\n"));
  assertEquals([first.used, first.lines], [2, 1]);
  assertEquals(buffer.first(), first, "it waits until it is written");
  buffer.shift();
  buffer.push(encode("c\n"));
  assertEquals(drain(buffer), ["b\nc\n"]);
  assertEquals([buffer.first(), buffer.first()], [undefined, undefined]);
});

Deno.test("a line that is longer than a piece gets one of its own", () => {
  const buffer = new AuditBuffer(10 * CHUNK_BYTES);
  const long = "x".repeat(2 * CHUNK_BYTES);
  buffer.push(encode("a\n"));
  assertEquals(buffer.push(encode(long)), true);
  buffer.push(encode("b\n"));
  assertEquals(drain(buffer).join(""), `a\n${long}b\n`);
});

Deno.test("what finds no room is not taken", () => {
  const buffer = new AuditBuffer(100);
  let taken = 0;
  while (buffer.push(encode("123456789\n"))) taken++;
  assertEquals([taken, buffer.bytes], [10, 100]);
  buffer.first();
  buffer.shift();
  assertEquals(buffer.push(encode("123456789\n")), true);
});
