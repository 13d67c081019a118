/** What every socket promises by its `Stream` and its `Socket`. */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import {
  type SocketKind,
  testEachKind as testEachStream,
} from "../../tests/support/memory/socket_kinds.ts";
import { writeAll } from "../../tests/support/peers/sockets.ts";
import { denoStream } from "./platform_stream.ts";
import { Socket } from "./socket.ts";
import { endOf } from "./stream.ts";

function testEachKind(
  name: string,
  test: (
    pair: { readonly peer: Deno.Conn; readonly socket: Socket },
    kind: SocketKind,
  ) => Promise<void>,
  of?: (kind: SocketKind) => boolean,
): void {
  testEachStream(
    name,
    ({ peer, stream }, kind) =>
      test({ peer, socket: new Socket(stream) }, kind),
    of,
  );
}

const words = (said: string) => new TextEncoder().encode(said);

testEachKind("bytes go and come, and ends too", async ({ peer, socket }) => {
  const into = new Uint8Array(16);
  const early = socket.read(into);
  await writeAll(peer, words("ask"));
  assertEquals(await early, 3);
  assertEquals(into.subarray(0, 3), words("ask"));
  assertEquals(await socket.write(words("tell")), 4);
  assertEquals(await peer.read(into), 4);
  await socket.closeWrite();
  assertEquals(await peer.read(into), null);
  const end = socket.read(into);
  peer.close();
  assertEquals(await end, null);
  assertEquals(await socket.read(into), null, "it stays the end");
  socket.close();
});

testEachKind(
  "a buffer that is filled exactly hides neither bytes nor the end",
  async ({ peer, socket }) => {
    await writeAll(peer, words("12345678"));
    peer.close();
    const into = new Uint8Array(4);
    const counts = [];
    for (let read = 0; read < 3; read++) counts.push(await socket.read(into));
    assertEquals(counts, [4, 4, null]);
    socket.close();
  },
);

testEachKind("closing it ends a read that waits", async ({ peer, socket }) => {
  const waiting = socket.read(new Uint8Array(1));
  await settled();
  socket.close();
  socket.close();
  await assertRejects(() => waiting);
  await assertRejects(() => socket.read(new Uint8Array(1)));
  peer.close();
});

testEachKind("closing it ends a write that waits", async ({ peer, socket }) => {
  const chunk = new Uint8Array(1 << 20);
  const full = (async () => {
    for (;;) await socket.write(chunk);
  })();
  for (let turn = 0; turn < 50; turn++) await settled();
  const failed = assertRejects(() => full);
  // What waits for room waits no longer; what was taken is on its way.
  socket.close();
  peer.close();
  await failed;
});

testEachKind(
  "a write that waits goes on when there is room",
  async ({ peer, socket }) => {
    const chunk = new Uint8Array(1 << 20);
    let written = 0;
    const writing = (async () => {
      while (written < 16 << 20) written += await socket.write(chunk);
      await socket.closeWrite();
    })();
    for (let turn = 0; turn < 50; turn++) await settled();
    let read = 0;
    for (let count; (count = await peer.read(chunk)) !== null;) read += count;
    await writing;
    assertEquals(read, written);
    socket.close();
    peer.close();
  },
);

testEachKind(
  "a reset is one, for a read that waits and for one that comes later",
  async ({ peer, socket }) => {
    const waiting = socket.read(new Uint8Array(1)).catch(endOf);
    await settled();
    denoStream(peer).reset();
    const end = await waiting;
    assert(typeof end === "object" && end?.kind === "reset", `${end}`);
    socket.close();
  },
  ({ isTcp }) => isTcp,
);

testEachKind(
  "addresses are known as far as there are any",
  ({ peer, socket }, { isTcp }) => {
    const { stream } = socket;
    const known = isTcp ? /^127\.0\.0\.1:[0-9]+$/ : /^(unix|\/.*\/socket)$/;
    assert(known.test(stream.remoteAddress), stream.remoteAddress);
    assert(known.test(stream.localAddress), stream.localAddress);
    assertEquals([stream.alpn, stream.closesInOrder], ["", true]);
    socket.close();
    peer.close();
    return Promise.resolve();
  },
);

testEachKind(
  "what it was looked into for stays, also for who takes it over",
  async ({ peer, socket }) => {
    const looking = [socket.fill(), socket.fill()];
    await writeAll(peer, words("one "));
    assertEquals(await Promise.all(looking), [true, true]);
    assertEquals(socket.bytes, words("one "));
    const more = socket.fill(7);
    await writeAll(peer, words("two"));
    assertEquals(await more, true);
    socket.drop(1);
    const into = new Uint8Array(2);
    assertEquals(await socket.read(into), 2);
    assertEquals(into, words("ne"));
    const over = new Socket(socket.handOver());
    const all = new Uint8Array(16);
    assertEquals(await over.read(all), 4);
    assertEquals(all.subarray(0, 4), words(" two"));
    const ended = over.fill();
    peer.close();
    assertEquals(await ended, false);
    assertEquals(await over.read(all), null);
    over.close();
  },
);

testEachKind(
  "a reset that a look has found is one for who takes it over",
  async ({ peer, socket }) => {
    await writeAll(peer, words("one"));
    assertEquals(await socket.fill(), true);
    const looking = assertRejects(() => socket.fill(4));
    denoStream(peer).reset();
    await looking;
    const over = new Socket(socket.handOver());
    const into = new Uint8Array(8);
    assertEquals(await over.read(into), 3);
    assertEquals(
      endOf(await assertRejects(() => over.read(into))).kind,
      "reset",
    );
    over.close();
  },
  ({ isTcp }) => isTcp,
);

testEachStream(
  "its end notifies who accepted it, and who uses it",
  async ({ peer, stream }) => {
    let ends = 0;
    stream.onClosed = () => ends++;
    const socket = new Socket(stream);
    const reading = assertRejects(() => socket.read(new Uint8Array(1)));
    await settled();
    assertEquals(ends, 0);
    stream.close();
    stream.reset();
    assertEquals(ends, 1);
    await reading;
    peer.close();
  },
);
