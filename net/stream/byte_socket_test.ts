/** What every `ByteSocket` promises that is neither TLS nor a conduit. */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { testEachKind } from "../../tests/support/memory/socket_kinds.ts";
import { writeAll } from "../../tests/support/peers/sockets.ts";
import { denoSocket } from "./deno_socket.ts";
import { endOf } from "./byte_socket.ts";

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
    denoSocket(peer).reset();
    const end = await waiting;
    assert(typeof end === "object" && end?.kind === "reset", `${end}`);
    socket.close();
  },
  ({ isTcp }) => isTcp,
);

testEachKind(
  "addresses are told as far as there are any",
  ({ peer, socket }, { isTcp, name }) => {
    const known = isTcp ? /^127\.0\.0\.1:[0-9]+$/ : /^(unix|\/.*\/socket)$/;
    assert(known.test(socket.remoteAddress), socket.remoteAddress);
    // Nobody has asked yet what a dialed one has here.
    if (!name.startsWith("dialed TCP")) {
      assert(known.test(socket.localAddress), socket.localAddress);
    }
    assertEquals([socket.alpn, socket.closesInOrder], ["", true]);
    socket.close();
    peer.close();
    return Promise.resolve();
  },
);
