import { assertEquals } from "@std/assert";
import { giveBuffer, takeBuffer } from "./datagram_buffers.ts";

Deno.test("buffers that are in use are nobody else's, and none is cut", () => {
  const taken = Array.from({ length: 200 }, () => takeBuffer());
  taken.forEach((buffer, index) => buffer.fill(index));
  for (const [index, buffer] of taken.entries()) {
    assertEquals([buffer.length, buffer[0], buffer.at(-1)], [
      65_536,
      index,
      index,
    ]);
  }
  taken.forEach(giveBuffer);
});

Deno.test("what was given back is used before there is more", () => {
  const kept = takeBuffer();
  const memories = new Set<ArrayBuffer>();
  for (let count = 0; count < 200; count++) {
    const [one, other] = [takeBuffer(), takeBuffer()];
    memories.add(one.buffer).add(other.buffer);
    giveBuffer(one);
    giveBuffer(other);
  }
  assertEquals(memories.size <= 2, true, `${memories.size}`);
  giveBuffer(kept);
});
