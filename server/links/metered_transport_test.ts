import { assertEquals } from "@std/assert";
import { UNAUTHENTICATED_BYTES_MAX } from "../../net/admission/intake_limits.ts";
import type { Transport, TransportEvents } from "../../net/stream/transport.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { forAll } from "../../tests/support/memory/prng.ts";
import { concat } from "../../tests/support/peers/sockets.ts";
import {
  LATE_BYTES_MAX,
  meteredTransport,
  SLICE_BYTES,
} from "./metered_transport.ts";

/**
 * An unauthenticated peer with so much work, who costs `costMs` a chunk, and
 * what came of it.
 */
function scene(budgetMs: number, costMs = 0) {
  const timers = new FakeTimers();
  const guest = { isUnauthenticated: true, charged: 0, bytes: 0 };
  const ends: string[] = [];
  const chunks: Uint8Array[] = [];
  let events: TransportEvents | undefined;
  const transport = meteredTransport(
    {
      start: (given: TransportEvents) => void (events = given),
      close: () => void ends.push("closed"),
    } as Transport,
    {
      get isUnauthenticated() {
        return guest.isUnauthenticated;
      },
      takeBytes: (bytes) => (guest.bytes += bytes) <= UNAUTHENTICATED_BYTES_MAX,
      linger: () => void ends.push("lingers"),
      takeWork: (ms) => (guest.charged += ms) <= budgetMs,
    },
    timers,
    (reason) => ends.push(reason),
  );
  transport.start({
    onChunk: (chunk) => {
      chunks.push(chunk.slice());
      if (costMs > 0) timers.advance(costMs);
    },
    onEnd: () => ends.push("end"),
    onClose: () => ends.push("close"),
  });
  return { timers, guest, ends, chunks, events: events! };
}

Deno.test("an unauthenticated peer's bytes come in slices, with a turn behind each", () => {
  const { timers, ends, chunks, events } = scene(1_000);
  events.onChunk(new Uint8Array(3 * SLICE_BYTES));
  events.onEnd();
  assertEquals(chunks.map(({ length }) => length), [SLICE_BYTES]);
  timers.advance(1);
  timers.advance(1);
  assertEquals(chunks.length, 3);
  assertEquals(ends, ["end"]);
});

Deno.test("the time that they take is charged, and ends it when there is none left", () => {
  const { ends, chunks, events } = scene(2, 1);
  for (let index = 0; index < 5; index++) events.onChunk(new Uint8Array(500));
  assertEquals(ends, ["unauthenticated peers from there made too much work"]);
  assertEquals(chunks.length, 3);
});

Deno.test("an unauthenticated peer who says too much is ended, read or not", () => {
  const { ends, chunks, events } = scene(1_000);
  events.onChunk(new Uint8Array(UNAUTHENTICATED_BYTES_MAX));
  assertEquals(ends, []);
  events.onChunk(new Uint8Array(1));
  assertEquals(ends, ["it said more than 131072 bytes, and not who it is"]);
  assertEquals(chunks.length, 1);
});

Deno.test("whoever goes on when told to stop is read no more", () => {
  const { timers, ends, events } = scene(1_000);
  events.onChunk(new Uint8Array(UNAUTHENTICATED_BYTES_MAX + 1));
  events.onChunk(new Uint8Array(LATE_BYTES_MAX));
  timers.advance(1_000);
  assertEquals(ends.slice(1), []);
  for (let index = 0; index < 3; index++) events.onChunk(new Uint8Array(1));
  assertEquals(ends.slice(1), [], "first its last words leave");
  timers.advance(1_000);
  assertEquals(ends.slice(1), ["lingers", "closed"]);
});

Deno.test("whoever has shown who it is pays nothing and waits for nothing", () => {
  const { timers, guest, ends, chunks, events } = scene(20);
  events.onChunk(new Uint8Array(3 * SLICE_BYTES));
  guest.isUnauthenticated = false;
  timers.advance(1);
  assertEquals(chunks.length, 3);
  const { charged } = guest;
  for (let index = 0; index < 9; index++) {
    events.onChunk(new Uint8Array(UNAUTHENTICATED_BYTES_MAX));
  }
  assertEquals([chunks.length, guest.charged, ends], [12, charged, []]);
});

Deno.test("what waits when the connection is lost is nobody's", () => {
  const { timers, ends, chunks, events } = scene(20);
  events.onChunk(new Uint8Array(3 * SLICE_BYTES));
  events.onClose(undefined);
  timers.advance(10);
  assertEquals([chunks.length, ends, timers.pendingCount], [1, ["close"], 0]);
});

Deno.test("however it is cut and whenever it is known, all of it comes in order", () =>
  forAll(20, (prng) => {
    const { timers, guest, ends, chunks, events } = scene(1e9);
    const said = new Uint8Array(UNAUTHENTICATED_BYTES_MAX)
      .map((_, index) => index % 251);
    for (let at = 0; at < said.length;) {
      const end = at + 1 + prng.below(20_000);
      events.onChunk(said.slice(at, end));
      at = end;
      if (prng.below(3) === 0) timers.advance(1);
      if (prng.below(20) === 0) guest.isUnauthenticated = false;
    }
    events.onEnd();
    while (timers.pendingCount > 0) timers.advance(1);
    assertEquals(concat(chunks), said);
    assertEquals(ends, ["end"]);
  }));
