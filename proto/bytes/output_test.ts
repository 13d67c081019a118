import { joinedBytes } from "./byte_arrays.ts";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import { BUFFER_BYTES_MAX, BUFFER_CLASSES, BufferPool } from "./buffer_pool.ts";
import { BATCH_BYTES_MAX, Output, type OutputKind } from "./output.ts";
import { fnv1a } from "./fnv1a.ts";

Deno.test("bytes leave in the order in which they were reserved", () =>
  forAll(20, (prng) => {
    const output = new Output(new BufferPool());
    const expected: Uint8Array[] = [];
    const seen: Uint8Array[] = [];
    for (let step = 0; step < 50; step++) {
      const bytes = prng.bytes(1 + prng.below(prng.pick([20, 3000, 50_000])));
      put(output, bytes, prng.pick<OutputKind>(["control", "bulk"]));
      expected.push(bytes);
      if (prng.below(3) === 0) takeOne(output, seen);
    }
    while (takeOne(output, seen));
    // As text, because comparing hundreds of thousands of numbers takes seconds.
    assert(joinedBytes(seen).toHex() === joinedBytes(expected).toHex());
    assertEquals([output.queuedBytes, output.controlBytes], [0, 0]);
  }));

Deno.test("two frames of 64 KiB fill one batch exactly", () => {
  const output = new Output();
  for (let frame = 0; frame < 3; frame++) output.reserve(65_536, "bulk");
  assertEquals(output.take()?.length, BATCH_BYTES_MAX);
  output.written();
  assertEquals(output.take()?.length, 65_536);
});

Deno.test("one reservation larger than a batch gets a batch of its own", () => {
  const output = new Output();
  put(output, Uint8Array.of(1), "control");
  const at = output.reserve(BATCH_BYTES_MAX * 2, "control");
  output.buffer.fill(7, at, at + BATCH_BYTES_MAX * 2);
  assertEquals(output.take()?.length, 1);
  output.written();
  assertEquals(output.take()?.length, BATCH_BYTES_MAX * 2);
});

Deno.test("only one batch is out at a time", () => {
  const output = new Output();
  put(output, Uint8Array.of(1), "bulk");
  assertEquals(output.take()?.length, 1);
  put(output, Uint8Array.of(2, 3), "bulk");
  assertEquals(output.take(), undefined);
  assertEquals(output.queuedBytes, 3);
  output.written();
  assertEquals(output.take()?.length, 2);
  output.written();
  assertThrows(() => output.written(), TypeError);
});

Deno.test("urgent bytes overtake bulk that waits, but not the very first", () => {
  const output = new Output();
  output.reserve(20_000, "bulk");
  urgent(output, 9);
  assertEquals(output.take()?.length, 20_001);
  output.reserve(BATCH_BYTES_MAX, "bulk");
  urgent(output, 7);
  urgent(output, 8);
  output.written();
  assertEquals(output.take(), Uint8Array.of(7, 8));
  output.written();
  assertEquals(output.take()?.length, BATCH_BYTES_MAX);
});

Deno.test("urgent bytes join a short queue instead of taking a write", () => {
  const output = new Output();
  put(output, Uint8Array.of(1), "bulk");
  output.take();
  output.written();
  put(output, Uint8Array.of(2), "bulk");
  urgent(output, 3);
  assertEquals(output.take(), Uint8Array.of(2, 3));
});

Deno.test("control bytes are counted until they are written", () => {
  const output = new Output();
  put(output, Uint8Array.of(1, 2), "control");
  put(output, Uint8Array.of(3), "bulk");
  assertEquals([output.controlBytes, output.queuedBytes], [2, 3]);
  output.take();
  assertEquals(output.controlBytes, 2);
  output.written();
  assertEquals([output.controlBytes, output.queuedBytes], [0, 0]);
});

Deno.test("discard() drops what was not taken", () => {
  const output = new Output();
  output.reserve(10, "bulk");
  output.take();
  output.reserve(20, "control");
  output.discard();
  assertEquals([output.queuedBytes, output.controlBytes], [10, 0]);
  output.written();
  assertEquals(output.take(), undefined);
});

Deno.test("an idle output holds no buffer", () => {
  const pool = new BufferPool();
  const output = new Output(pool);
  output.reserve(10, "bulk");
  const { buffer } = output;
  output.take();
  output.written();
  assert(pool.acquire(10_000) !== buffer);
  assert(pool.acquire(512) === buffer);
});

function put(output: Output, bytes: Uint8Array, kind: OutputKind): void {
  const at = output.reserve(bytes.length, kind);
  output.buffer.set(bytes, at);
}

function urgent(output: Output, byte: number): void {
  const at = output.reserveUrgent(1);
  output.buffer[at] = byte;
}

function takeOne(output: Output, seen: Uint8Array[]): boolean {
  const batch = output.take();
  if (batch === undefined) return false;
  seen.push(batch.slice());
  output.written();
  return true;
}

Deno.test("bytes are put together in order, in memory of their own", () => {
  const one = Uint8Array.of(1, 2);
  assertEquals(joinedBytes([]), new Uint8Array(0));
  assertEquals(
    joinedBytes([one, new Uint8Array(0), Uint8Array.of(3)]),
    Uint8Array.of(1, 2, 3),
  );
  assert(joinedBytes([one]).buffer !== one.buffer);
});

// From the reference's list of 32-bit FNV-1a values.
for (
  const [text, hash] of [["", 0x811c9dc5], ["a", 0xe40c292c], [
    "foobar",
    0xbf9cf968,
  ]] as const
) {
  Deno.test(`fnv1a() of ${JSON.stringify(text)} is what others have`, () => {
    assertEquals(fnv1a(text), hash);
  });
}

Deno.test("a buffer is of the smallest class that is large enough", () => {
  const pool = new BufferPool();
  for (const size of BUFFER_CLASSES) {
    assertEquals(pool.acquire(size).length, size);
    assertEquals(pool.acquire(size - 1).length, size);
  }
  assertEquals(pool.acquire(BUFFER_BYTES_MAX + 1).length, 131_073);
});

Deno.test("a returned buffer is lent again", () => {
  const pool = new BufferPool();
  const buffer = pool.acquire(100);
  pool.release(buffer);
  assert(pool.acquire(100) === buffer);
  assert(pool.acquire(100) !== buffer);
});

Deno.test("no more is kept than the limit, and nothing of a foreign size", () => {
  const pool = new BufferPool(1024); // two of the smallest class
  const buffers = [1, 2, 3].map(() => pool.acquire(512));
  for (const buffer of buffers) pool.release(buffer);
  const lent = [1, 2, 3].map(() => pool.acquire(512));
  assertEquals(lent.filter((one) => buffers.includes(one)).length, 2);
  const foreign = new Uint8Array(600);
  pool.release(foreign);
  assert(pool.acquire(600) !== foreign);
});

Deno.test("a pool that is dropped keeps nothing and goes on lending", () => {
  const pool = new BufferPool();
  const buffer = pool.acquire(100);
  pool.release(buffer);
  pool.drop();
  const other = pool.acquire(100);
  assert(other !== buffer);
  pool.release(other);
  assert(pool.acquire(100) === other);
});
