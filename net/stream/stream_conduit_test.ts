import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import { assert, assertEquals } from "@std/assert";
import { Prng } from "../../tests/support/memory/prng.ts";
import { Listener } from "../../tests/support/peers/sockets.ts";
import type { ConduitEnd } from "../../proto/transfer/conduit.ts";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import {
  conduitOf,
  DROPPED_BYTES_PER_TURN,
  PENDING_BYTES_SOFT_LIMIT,
} from "./stream_conduit.ts";
import { ScriptedStream } from "../../tests/support/memory/scripted_stream.ts";

const text = new TextEncoder();

Deno.test("a stalled reader stalls the sender", async () => {
  const stream = new ScriptedStream();
  const listener = new Listener(conduitOf(stream), { consume: false });
  stream.deliver(new Uint8Array(100));
  await listener.until(() => listener.receivedBytes === 100);
  listener.conduit.consumed(99);
  const { waits } = stream;
  await settled();
  assertEquals(stream.waits, waits, "one byte is still held");
  listener.conduit.consumed(1);
  await settled();
  assert(stream.waits > waits);
  stream.deliver(null);
  await listener.until(() => listener.ended);
  listener.conduit.reset("done");
  await listener.closed();
});

Deno.test("writes of one turn leave together", async () => {
  const stream = new ScriptedStream();
  const listener = new Listener(conduitOf(stream));
  for (const word of ["a", "bc", "def"]) {
    listener.conduit.write(text.encode(word));
  }
  assertEquals(stream.written.length, 0);
  await Promise.resolve();
  assertEquals(stream.written.map(String), [String(text.encode("abcdef"))]);
  listener.conduit.reset("done");
  await listener.closed();
});

Deno.test("pieces of a frame that come in one turn leave together", async () => {
  const stream = new ScriptedStream();
  const listener = new Listener(conduitOf(stream));
  const record = new Uint8Array(16 * 1024);
  for (let piece = 0; piece < 4; piece++) {
    listener.conduit.write(record);
    // What a read of what is here already takes.
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
  }
  await settled();
  assertEquals(sizes(stream.written), [4 * record.length]);
  listener.conduit.reset("done");
  await listener.closed();
});

Deno.test("a piece waits for nothing that has yet to come, and a large chunk not at all", async () => {
  const stream = new ScriptedStream();
  const listener = new Listener(conduitOf(stream));
  const record = new Uint8Array(16 * 1024);
  listener.conduit.write(record);
  await settled();
  assertEquals(sizes(stream.written), [record.length]);
  listener.conduit.write(new Uint8Array(64 * 1024));
  await Promise.resolve();
  assertEquals(sizes(stream.written), [record.length, 64 * 1024]);
  listener.conduit.reset("done");
  await listener.closed();
});

function sizes(written: readonly Uint8Array[]): number[] {
  return written.map((bytes) => bytes.length);
}

Deno.test("partial writes are carried on", async () => {
  const stream = new ScriptedStream();
  stream.takes = 7;
  const conduit = conduitOf(stream);
  const listener = new Listener(conduit);
  const bytes = new Prng(3).bytes(PENDING_BYTES_SOFT_LIMIT);
  await listener.send(bytes);
  conduit.end();
  stream.deliver(null);
  assertEquals(await listener.closed(), { kind: "clean" });
  assert(equal(joinedBytes(stream.written), bytes));
});

Deno.test("bytes without end for a peer that is gone leave the event loop alone", async () => {
  const stream = new ScriptedStream();
  stream.writeError = new Deno.errors.BrokenPipe("Broken pipe");
  const conduit = conduitOf(stream);
  const chunk = new Uint8Array(64 * 1024);
  const atOnceMax = 4 * DROPPED_BYTES_PER_TURN;
  let [dropped, atOnce] = [0, 0];
  const offer = () => {
    for (let taken = chunk.length; taken === chunk.length;) {
      taken = conduit.write(chunk);
      dropped += taken;
      atOnce += taken;
      if (atOnce > atOnceMax) return; // A failure, and not a test for ever.
    }
  };
  const closed = Promise.withResolvers<ConduitEnd>();
  conduit.attach({
    onData() {},
    onEnd() {},
    onWritable: offer,
    onClose: closed.resolve,
  });
  offer();
  for (let turn = 0; turn < 10; turn++) {
    await settled();
    assert(atOnce <= atOnceMax, `${atOnce} bytes in one turn`);
    atOnce = 0;
  }
  assert(dropped > 4 * DROPPED_BYTES_PER_TURN, "it stopped taking them");
  stream.deliver(new Deno.errors.ConnectionReset());
  assertEquals((await closed.promise).kind, "reset");
  assertEquals(conduit.write(chunk), 0, "it is over");
});

Deno.test("an error that is no reset is a loss", async () => {
  const stream = new ScriptedStream();
  const listener = new Listener(conduitOf(stream));
  stream.deliver(
    Object.assign(new Error("os error 110"), { code: "ETIMEDOUT" }),
  );
  assertEquals(await listener.closed(), {
    kind: "lost",
    reason: "connection timed out",
  });
});

Deno.test("an end is over only when it has left", async () => {
  const stream = new ScriptedStream();
  stream.isSlow = true;
  const listener = new Listener(conduitOf(stream));
  listener.conduit.write(text.encode("goodbye"));
  listener.conduit.end();
  stream.deliver(null);
  await settled();
  assertEquals([stream.calls, listener.end], [[], undefined]);
  stream.complete();
  await settled();
  assertEquals(stream.calls, ["closeWrite", "close"]);
  assertEquals(await listener.closed(), { kind: "clean" });
});

Deno.test("who closes a stream under its conduit ends the conduit", async () => {
  const stream = new ScriptedStream();
  const listener = new Listener(conduitOf(stream));
  await settled();
  stream.close();
  assertEquals((await listener.closed()).kind, "lost");
});

function equal(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length &&
    left.every((byte, index) => byte === right[index]);
}
