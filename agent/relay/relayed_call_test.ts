import { assertEquals } from "@std/assert";
import { ByteRelay } from "./relayed_call.ts";

/** A body that takes so many bytes, and who sends to it. */
function setUp(room: number) {
  const sent: number[] = [];
  const to = {
    room,
    asked: 0,
    sendFrame(_head: Uint8Array, body: Uint8Array) {
      to.room -= body.length;
      sent.push(...body);
    },
    awaitRoom: () => void to.asked++,
  };
  const from = {
    credit: 0,
    consumed: (bytes: number) => from.credit += bytes,
  };
  const relay = new ByteRelay({ consumed: (bytes) => from.consumed(bytes) });
  return { relay, to, from, sent };
}

Deno.test("bytes pass as far as there is room, and credit returns with them", () => {
  const { relay, to, from, sent } = setUp(3);
  relay.open(to);
  relay.push(Uint8Array.of(1, 2, 3, 4, 5));
  relay.push(Uint8Array.of(6));
  assertEquals([sent, from.credit, relay.waiting], [[1, 2, 3], 3, 3]);
  assertEquals(to.asked > 0, true);
  to.room = 2;
  relay.drain();
  assertEquals([sent, from.credit], [[1, 2, 3, 4, 5], 5]);
  to.room = 9;
  relay.drain();
  assertEquals([sent, from.credit, relay.waiting], [
    [1, 2, 3, 4, 5, 6],
    6,
    0,
  ]);
});

Deno.test("what comes before there is anywhere to go waits without credit", () => {
  const { relay, to, from, sent } = setUp(9);
  const chunk = Uint8Array.of(1, 2);
  relay.push(chunk);
  chunk.fill(0);
  assertEquals([from.credit, relay.waiting], [0, 2]);
  relay.open(to);
  assertEquals([sent, from.credit], [[1, 2], 2]);
});

Deno.test("an end waits for everything before it, and comes once", () => {
  const { relay, to } = setUp(1);
  let ends = 0;
  relay.push(Uint8Array.of(1, 2));
  relay.endWith(() => ends++);
  assertEquals(ends, 0);
  relay.open(to);
  assertEquals(ends, 0);
  to.room = 1;
  relay.drain();
  relay.drain();
  assertEquals(ends, 1);
});

Deno.test("an end without bytes waits for somewhere to go", () => {
  const { relay, to } = setUp(1);
  let ends = 0;
  relay.endWith(() => ends++);
  assertEquals(ends, 0);
  relay.open(to);
  assertEquals(ends, 1);
});
