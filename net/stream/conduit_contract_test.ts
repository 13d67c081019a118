/**
 * What a conduit promises whatever its stream is; what needs a stream that does
 * as it is told is in `stream_conduit_test.ts`.
 */

import { assert, assertEquals, assertThrows } from "@std/assert";
import { BUFFER_BYTES_MAX } from "../../proto/bytes/buffer_pool.ts";
import type { ConduitEnd } from "../../proto/transfer/conduit.ts";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { Prng } from "../../tests/support/memory/prng.ts";
import {
  type SocketKind,
  testEachKind,
} from "../../tests/support/memory/socket_kinds.ts";
import {
  Listener,
  readToEnd,
  writeAll,
} from "../../tests/support/peers/sockets.ts";
import { soon } from "../../tests/support/watch/event_loop.ts";
import { conduitOf, DROPPED_BYTES_PER_TURN } from "./stream_conduit.ts";
import { denoStream } from "./platform_stream.ts";
import { Socket } from "./socket.ts";

const text = new TextEncoder();
const words = (said: string) => text.encode(said);

const bytes = new Prng(1).bytes(2 << 20);

testEachKind("2 MiB go both ways and end cleanly", async ({ peer, stream }) => {
  const conduit = conduitOf(stream);
  const listener = new Listener(conduit);
  const [echoed] = await Promise.all([
    readToEnd(peer),
    writeAll(peer, bytes).then(() => peer.closeWrite()),
    listener.send(bytes).then(() => conduit.end()),
  ]);
  assertEquals(await listener.closed(), { kind: "clean" });
  assert(equal(echoed, bytes));
  assert(equal(listener.received, bytes));
  peer.close();
});

testEachKind("bytes right before the end arrive", async ({ peer, stream }) => {
  const conduit = conduitOf(stream);
  const listener = new Listener(conduit);
  conduit.write(words("last words"));
  conduit.end();
  assertEquals(await readToEnd(peer), words("last words"));
  peer.close();
  assertEquals(await listener.closed(), { kind: "clean" });
});

testEachKind(
  "either half ends while the other goes on",
  async ({ peer, stream }) => {
    const conduit = conduitOf(stream);
    const listener = new Listener(conduit);
    await writeAll(peer, words("question"));
    await peer.closeWrite();
    await listener.until(() => listener.ended);
    assertEquals(listener.received, words("question"));
    assertEquals(listener.end, undefined);
    conduit.write(words("answer"));
    conduit.end();
    assertEquals(await readToEnd(peer), words("answer"));
    assertEquals(await listener.closed(), { kind: "clean" });
    peer.close();
  },
);

testEachKind(
  "our end leaves the peer's side open",
  async ({ peer, stream }) => {
    const conduit = conduitOf(stream);
    const listener = new Listener(conduit);
    conduit.end();
    assertEquals(await readToEnd(peer), new Uint8Array(0));
    await writeAll(peer, words("still here"));
    await listener.until(() => listener.receivedBytes === 10);
    peer.close();
    assertEquals(await listener.closed(), { kind: "clean" });
  },
);

testEachKind(
  "one byte and an end behind it are both received",
  async ({ peer, stream }) => {
    await writeAll(peer, words("x"));
    peer.close();
    const conduit = conduitOf(stream);
    const listener = new Listener(conduit);
    await listener.until(() => listener.ended);
    assertEquals(listener.received, words("x"));
    conduit.end();
    assertEquals(await listener.closed(), { kind: "clean" });
  },
);

testEachKind(
  "an end behind bytes that nobody takes is received when they are",
  async ({ peer, stream }) => {
    const conduit = conduitOf(stream);
    const listener = new Listener(conduit, { consume: false });
    await writeAll(peer, words("first"));
    await listener.until(() => listener.receivedBytes === 5);
    await writeAll(peer, words("second"));
    await peer.closeWrite();
    for (let turn = 0; turn < 5; turn++) await settled();
    assertEquals(listener.receivedBytes, 5, "the first are not taken yet");
    conduit.consumed(5);
    await listener.until(() => listener.receivedBytes === 11);
    assertEquals(listener.ended, false);
    conduit.consumed(6);
    await listener.until(() => listener.ended);
    conduit.end();
    assertEquals(await listener.closed(), { kind: "clean" });
    peer.close();
  },
);

testEachKind("what was looked at comes first", async ({ peer, stream }) => {
  const socket = new Socket(stream);
  const looked = socket.fill(6);
  await writeAll(peer, words("early "));
  assertEquals(await looked, true);
  const conduit = conduitOf(socket.handOver());
  await writeAll(peer, words("late"));
  peer.close();
  const listener = new Listener(conduit);
  assertEquals(listener.receivedBytes, 0, "nothing is heard inside attach");
  await listener.until(() => listener.ended);
  assertEquals(listener.received, words("early late"));
  conduit.end();
  await listener.closed();
});

testEachKind(
  "a reset of the peer is not an end",
  async ({ peer, stream }, kind) => {
    const listener = new Listener(conduitOf(stream));
    await reset(peer, listener, kind);
    assertEquals(await listener.closed(), {
      kind: "reset",
      reason: "connection reset by peer",
    });
    if (kind.isTcp) assertEquals(listener.ended, false);
  },
);

testEachKind(
  "a reset behind bytes that nobody takes is one when they are",
  async ({ peer, stream }) => {
    const conduit = conduitOf(stream);
    const listener = new Listener(conduit, { consume: false });
    await writeAll(peer, words("stalled"));
    await listener.until(() => listener.receivedBytes === 7);
    denoStream(peer).reset();
    for (let turn = 0; turn < 5; turn++) await settled();
    conduit.consumed(7);
    assertEquals((await listener.closed()).kind, "reset");
  },
  ({ isTcp }) => isTcp,
);

testEachKind("our reset is one for the peer", async ({ peer, stream }) => {
  const conduit = conduitOf(stream);
  const listener = new Listener(conduit);
  conduit.reset("the other end was reset");
  assertEquals(listener.end, undefined, "never from inside reset");
  assertEquals(await listener.closed(), {
    kind: "reset",
    reason: "the other end was reset",
  });
  const seen = await peer.read(new Uint8Array(1)).catch((error) => error);
  assert(seen instanceof Deno.errors.ConnectionReset, String(seen));
  peer.close();
}, ({ isTcp }) => isTcp && Deno.build.os === "linux");

testEachKind(
  "a stalled peer bounds what is taken",
  async ({ peer, stream }) => {
    const conduit = conduitOf(stream);
    const listener = new Listener(conduit);
    const chunk = new Prng(2).bytes(64 * 1024);
    // Until it takes nothing although the kernel has had its turns.
    let taken = 0;
    for (;;) {
      const seen = listener.writableCalls;
      const count = conduit.write(chunk);
      taken += count;
      if (count === chunk.length) continue;
      if (!await soon(() => listener.writableCalls > seen)) break;
    }
    assert(taken <= KERNEL_BYTES_MAX + 2 * BUFFER_BYTES_MAX, `took ${taken}`);
    assertEquals(conduit.write(chunk), 0);
    conduit.end();
    assertEquals((await readToEnd(peer)).length, taken);
    peer.close();
    assertEquals(await listener.closed(), { kind: "clean" });
  },
);

testEachKind(
  "a peer that takes nothing and goes ends the conduit",
  async ({ peer, stream }) => {
    const conduit = conduitOf(stream);
    const listener = new Listener(conduit);
    const chunk = new Uint8Array(64 * 1024);
    for (;;) {
      const seen = listener.writableCalls;
      if (conduit.write(chunk) === chunk.length) continue;
      if (!await soon(() => listener.writableCalls > seen)) break;
    }
    peer.close();
    assertEquals((await listener.closed()).kind, "reset");
  },
);

testEachKind(
  "what came before a write that failed is still delivered",
  async ({ peer, stream }) => {
    const conduit = conduitOf(stream);
    const listener = new Listener(conduit, { consume: false });
    await writeAll(peer, words("first"));
    await listener.until(() => listener.receivedBytes === 5);
    await writeAll(peer, words("413 too large"));
    peer.close();
    // The peer is gone: bytes go nowhere, are taken all the same, and never
    // more of them in one turn than may be.
    const chunk = new Uint8Array(64 * 1024);
    const atOnceMax = KERNEL_BYTES_MAX + 4 * DROPPED_BYTES_PER_TURN;
    for (let turn = 0; turn < 20; turn++) {
      let atOnce = 0;
      for (let count = 1; count > 0; atOnce += count) {
        count = conduit.write(chunk);
        if (atOnce > atOnceMax) break;
      }
      assert(atOnce <= atOnceMax, `${atOnce} bytes in one turn`);
      await settled();
    }
    assertEquals(listener.end, undefined, "it has something to say");
    conduit.consumed(5);
    await listener.until(() => listener.receivedBytes === 18);
    conduit.consumed(13);
    assertEquals((await listener.closed()).kind, "reset");
    assertEquals(conduit.write(chunk), 0, "it is over");
  },
  ({ isTcp }) => !isTcp,
);

testEachKind(
  "a loss behind the caller stays a loss",
  async ({ peer, stream }) => {
    const listener = new Listener(conduitOf(stream));
    listener.conduit.reset("link lost", "lost");
    assertEquals(await listener.closed(), {
      kind: "lost",
      reason: "link lost",
    });
    peer.close();
  },
);

testEachKind(
  "a reset from inside an event is no crash",
  async ({ peer, stream }) => {
    const conduit = conduitOf(stream);
    const closed = Promise.withResolvers<ConduitEnd>();
    conduit.attach({
      onData: ({ length }) => {
        conduit.reset("enough");
        assertThrows(() => conduit.consumed(length + 1), RangeError);
      },
      onEnd: () => {},
      onWritable: () => {},
      onClose: closed.resolve,
    });
    await writeAll(peer, words("and now?"));
    assertEquals((await closed.promise).kind, "reset");
    peer.close();
  },
);

testEachKind("misuse is refused", async ({ peer, stream }) => {
  const conduit = conduitOf(stream);
  const listener = new Listener(conduit);
  assertThrows(() => conduit.consumed(1), RangeError);
  assertThrows(() => conduit.attach(listener), TypeError);
  conduit.end();
  assertThrows(() => conduit.write(new Uint8Array(1)), TypeError);
  peer.close();
  await listener.closed();
});

/** A unix socket that is closed with bytes unread is one that was reset. */
async function reset(
  peer: Deno.Conn,
  listener: Listener,
  { isTcp }: SocketKind,
): Promise<void> {
  if (isTcp) return denoStream(peer).reset();
  listener.conduit.write(words("unread"));
  await settled();
  peer.close();
}

/** More than both sockets' buffers of a local connection ever hold. */
const KERNEL_BYTES_MAX = 16 << 20;

function equal(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length &&
    left.every((byte, index) => byte === right[index]);
}
