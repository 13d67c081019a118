import { assertEquals } from "@std/assert";
import { testEachKind } from "../../tests/support/memory/socket_kinds.ts";
import { conduitOf } from "./conduit_of_socket.ts";
import { Listener } from "../../tests/support/peers/sockets.ts";
import { watched } from "./watched_socket.ts";

testEachKind(
  "its end is told, by whatever it is closed",
  async ({ peer, socket }) => {
    let ends = 0;
    const seen = watched(socket, () => ends++);
    assertEquals(
      [seen.remoteAddress, seen.localAddress, seen.alpn, seen.closesInOrder],
      [socket.remoteAddress, socket.localAddress, "", true],
    );
    await seen.write(new Uint8Array([1, 2]));
    const into = new Uint8Array(4);
    assertEquals(await peer.read(into), 2);
    await peer.write(new Uint8Array([3]));
    assertEquals(await seen.read(into), 1);
    await seen.closeWrite();
    assertEquals(await peer.read(into), null);
    assertEquals(ends, 0);
    seen.close();
    assertEquals(ends > 0, true);
    peer.close();
  },
);

testEachKind("a conduit of it tells as well", async ({ peer, socket }) => {
  let ends = 0;
  const conduit = conduitOf(watched(socket, () => ends++));
  const listener = new Listener(conduit);
  conduit.reset("enough");
  await listener.closed();
  assertEquals(ends > 0, true);
  peer.close();
});
