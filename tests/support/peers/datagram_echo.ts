/**
 * Datagrams that go through a tunnel and come back, each by itself.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { dialDatagrams } from "../../../client/dial.ts";
import type { TunnelRoute } from "../../../client/tunnel_route.ts";

/** Passes when an echo behind `via` returns datagrams as they were sent. */
export async function assertEchoes(
  over: { readonly via: TunnelRoute; readonly node?: string },
  sizes: readonly number[] = [1, 9, 1_400],
): Promise<void> {
  const echo = Deno.listenDatagram({
    transport: "udp",
    hostname: "127.0.0.1",
    port: 0,
  });
  const { port } = echo.addr as Deno.NetAddr;
  const answering = (async () => {
    for (let count = 0; count < sizes.length; count++) {
      const [datagram, from] = await echo.receive();
      await echo.send(datagram, from);
    }
  })();
  using flow = await dialDatagrams(`127.0.0.1:${port}`, over);
  for (const size of sizes) {
    const sent = new Uint8Array(size).fill(size);
    await flow.send(sent);
    assertEquals(await flow.receive(), sent);
  }
  await answering;
  echo.close();
}
