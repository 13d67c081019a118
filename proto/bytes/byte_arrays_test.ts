import { assert, assertEquals } from "@std/assert";
import { joinedBytes } from "./byte_arrays.ts";
import { fnv1a } from "./fnv1a.ts";
import { BUFFER_BYTES_MAX, BUFFER_CLASSES, BufferPool } from "./buffer_pool.ts";

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
