import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import { assert, assertEquals } from "@std/assert";
import { UNAUTHENTICATED_BYTES_MAX } from "../../net/admission/connection_limits.ts";
import { WOULD_BLOCK } from "../../net/stream/stream.ts";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { forAll } from "../../tests/support/memory/prng.ts";
import { ScriptedStream } from "../../tests/support/memory/scripted_stream.ts";
import {
  IDLE_CHECK_MS,
  LATE_BYTES_MAX,
  meteredStream,
  SLICE_BYTES,
  UNAUTHENTICATED_LIFE_MS,
  watchIdle,
} from "./metered_stream.ts";

/** An unauthenticated peer with so much work, who costs `costMs` a chunk, and what came of it. */
function scene(budgetMs: number, costMs = 0) {
  const timers = new FakeTimers();
  const admitted = {
    ...{ isUnauthenticated: true, charged: 0, bytes: 0, computedMs: 0 },
  };
  const ends: string[] = [];
  const chunks: Uint8Array[] = [];
  const below = new ScriptedStream();
  const stream = meteredStream(
    below,
    {
      get isUnauthenticated() {
        return admitted.isUnauthenticated;
      },
      takeBytes: (bytes) =>
        (admitted.bytes += bytes) <= UNAUTHENTICATED_BYTES_MAX,
      linger: () => void ends.push("lingers"),
      takeWork: (ms) => (admitted.charged += ms) <= budgetMs,
    },
    timers,
    (reason) => ends.push(reason),
    () => admitted.computedMs,
  );
  below.onClosed = () => ends.push("closed");
  const into = new Uint8Array(64 * 1024);
  const readAll = () => {
    for (;;) {
      const count = stream.isOpen ? stream.read(into) : WOULD_BLOCK;
      if (count === WOULD_BLOCK) return;
      if (count === 0) return void ends.push("end");
      chunks.push(into.slice(0, count));
      admitted.computedMs += costMs;
      // Other programs have their turns, too.
      if (costMs > 0) timers.advance(100 * costMs);
    }
  };
  stream.notify({ onReady: readAll, onFault() {} });
  return { timers, admitted, ends, chunks, below, readAll };
}

const sizes = (chunks: readonly Uint8Array[]) =>
  chunks.map(({ length }) => length);

Deno.test("an unauthenticated peer's bytes come in slices, with a turn behind each", async () => {
  const { ends, chunks, below, readAll } = scene(1_000);
  below.deliver(new Uint8Array(3 * SLICE_BYTES));
  below.deliver(null);
  readAll();
  assertEquals(sizes(chunks), [SLICE_BYTES, SLICE_BYTES]);
  while (ends.length === 0) await settled();
  assertEquals(sizes(chunks), [SLICE_BYTES, SLICE_BYTES, SLICE_BYTES]);
  assertEquals(ends, ["end"]);
});

Deno.test("a user that reads out of turn has the next one", async () => {
  const { chunks, below, readAll } = scene(1_000);
  below.deliver(new Uint8Array(0));
  readAll();
  assertEquals(chunks, []);
  await settled();
  below.deliver(new Uint8Array(10));
  assertEquals(sizes(chunks), [10]);
});

Deno.test("the time that they take is charged, and ends it when there is none left", async () => {
  const { ends, chunks, below } = scene(2, 1);
  for (let index = 0; index < 5; index++) {
    below.deliver(new Uint8Array(500));
    await settled();
  }
  assertEquals(ends, ["unauthenticated peers from there made too much work"]);
  assertEquals(chunks.length, 3);
});

Deno.test("time in which other programs have the processor is not charged", () => {
  const below = new ScriptedStream();
  const charges: number[] = [];
  const admitted = {
    isUnauthenticated: true,
    takeBytes: () => true,
    takeWork: (ms: number) => charges.push(ms) > 0,
    linger() {},
  };
  const stream = meteredStream(below, admitted, new FakeTimers(), () => {});
  const lock = new Int32Array(new SharedArrayBuffer(4));
  const awayMs = 50;
  stream.notify({
    onReady() {
      stream.read(new Uint8Array(10));
      // The thread stands still, as it does while others run.
      Atomics.wait(lock, 0, 0, awayMs);
    },
    onFault() {},
  });
  below.deliver(new Uint8Array(1));
  assertEquals(charges.length, 1);
  assert(charges[0]! > 0 && charges[0]! < awayMs, `${charges} ms`);
});

Deno.test("an unauthenticated peer that says too much is ended", async () => {
  const { admitted, ends, chunks, below } = scene(1_000);
  below.deliver(new Uint8Array(UNAUTHENTICATED_BYTES_MAX));
  while (admitted.bytes < UNAUTHENTICATED_BYTES_MAX) await settled();
  assertEquals(ends, []);
  below.deliver(new Uint8Array(1));
  assertEquals(ends, ["it sent more than 131072 bytes, and not who it is"]);
  assertEquals(joinedBytes(chunks).length, UNAUTHENTICATED_BYTES_MAX);
});

Deno.test("a peer that goes on after a refusal is read no more", async () => {
  const { timers, ends, below } = scene(1_000);
  below.deliver(new Uint8Array(UNAUTHENTICATED_BYTES_MAX + 1));
  while (ends.length === 0) await settled();
  below.deliver(new Uint8Array(LATE_BYTES_MAX));
  timers.advance(1_000);
  assertEquals(ends.slice(1), []);
  for (let index = 0; index < 3; index++) below.deliver(new Uint8Array(1));
  assertEquals(ends.slice(1), [], "first its last words leave");
  timers.advance(1_000);
  assertEquals(ends.slice(1), ["lingers", "closed"]);
});

Deno.test("a peer that has shown who it is pays nothing and waits for nothing", async () => {
  const { admitted, ends, chunks, below } = scene(20);
  below.deliver(new Uint8Array(3 * SLICE_BYTES));
  admitted.isUnauthenticated = false;
  while (joinedBytes(chunks).length < 3 * SLICE_BYTES) await settled();
  const { charged } = admitted;
  const seen = joinedBytes(chunks).length;
  for (let index = 0; index < 9; index++) {
    below.deliver(new Uint8Array(UNAUTHENTICATED_BYTES_MAX));
  }
  assertEquals(
    joinedBytes(chunks).length,
    seen + 9 * UNAUTHENTICATED_BYTES_MAX,
  );
  assertEquals([admitted.charged, ends], [charged, []]);
});

Deno.test("what waits when the connection is closed is nobody's", async () => {
  const { timers, ends, chunks, below } = scene(20);
  below.deliver(new Uint8Array(3 * SLICE_BYTES));
  below.close();
  for (let turn = 0; turn < 3; turn++) await settled();
  assertEquals(sizes(chunks), [SLICE_BYTES]);
  assertEquals([ends, timers.pendingCount], [["closed"], 0]);
});

Deno.test("however it is cut and whenever it is known, all of it comes in order", () =>
  forAll(20, async (prng) => {
    const { admitted, ends, chunks, below } = scene(1e9);
    const sent = new Uint8Array(UNAUTHENTICATED_BYTES_MAX)
      .map((_, index) => index % 251);
    for (let at = 0; at < sent.length;) {
      const end = at + 1 + prng.below(20_000);
      below.deliver(sent.slice(at, end));
      at = end;
      if (prng.below(3) === 0) await settled();
      if (prng.below(20) === 0) admitted.isUnauthenticated = false;
    }
    below.deliver(null);
    while (ends.length === 0) await settled();
    assert(ends.every((end) => end === "end"), `${ends}`);
    assertEquals(joinedBytes(chunks), sent);
  }));

/** A connection with so many calls, and what became of it. */
function idleScene(openStreams: number, isUnauthenticated = true) {
  const timers = new FakeTimers();
  const connection = {
    openStreams,
    ends: [] as string[],
    abort(code: number, reason: string) {
      this.ends.push(`${code} ${reason}`);
    },
  };
  const peer = { isUnauthenticated };
  const stop = watchIdle(connection, {
    timers,
    isUnauthenticated: () => peer.isUnauthenticated,
    ended: () => {},
  });
  return { timers, connection, peer, stop };
}

Deno.test("without a call a connection ends within ten seconds", () => {
  const { timers, connection } = idleScene(0);
  timers.advance(2 * IDLE_CHECK_MS - 1);
  assertEquals(connection.ends, []);
  timers.advance(1);
  assertEquals(connection.ends, ["0 no call was open for 5 s"]);
});

Deno.test("a call that comes and goes keeps it a while longer", () => {
  const { timers, connection } = idleScene(0);
  timers.advance(IDLE_CHECK_MS);
  connection.openStreams = 1;
  timers.advance(IDLE_CHECK_MS);
  connection.openStreams = 0;
  timers.advance(IDLE_CHECK_MS);
  assertEquals(connection.ends, []);
  timers.advance(IDLE_CHECK_MS);
  assertEquals(connection.ends.length, 1);
});

Deno.test("an unauthenticated peer with a call that never ends ends all the same, an agent does not", () => {
  const unknown = idleScene(1);
  const agent = idleScene(1, false);
  for (const { timers } of [unknown, agent]) {
    timers.advance(UNAUTHENTICATED_LIFE_MS);
  }
  assertEquals(unknown.connection.ends, [
    "0 it did not show who it is for 30 s",
  ]);
  agent.timers.advance(10 * UNAUTHENTICATED_LIFE_MS);
  assertEquals(agent.connection.ends, []);
});

Deno.test("a watch that is stopped leaves no timer behind", () => {
  const { timers, connection, stop } = idleScene(0);
  stop();
  timers.advance(UNAUTHENTICATED_LIFE_MS);
  assertEquals(connection.ends, []);
});
