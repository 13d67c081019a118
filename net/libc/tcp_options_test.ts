import { assert, assertEquals } from "@std/assert";
import { tcpPair } from "../../tests/support/peers/sockets.ts";
import { inetDescriptors, openLibc } from "./libc.ts";
import { tuneLinkSocket, UNSENT_BYTES_MAX } from "./tcp_options.ts";

const IPPROTO_TCP = 6;
const TCP_NODELAY = 1;
const TCP_NOTSENT_LOWAT = 25;

Deno.test("a link's socket sends at once and keeps little unsent", async () => {
  const [near, far] = await tcpPair();
  const [here, there] = [near.localAddr, near.remoteAddr] as Deno.NetAddr[];
  assert(tuneLinkSocket(here!, there!));
  assertEquals(optionOf(here!, TCP_NODELAY), 1);
  assertEquals(optionOf(here!, TCP_NOTSENT_LOWAT), UNSENT_BYTES_MAX);
  // Its other end is in this process too, and not meant.
  assert(optionOf(there!, TCP_NOTSENT_LOWAT) !== UNSENT_BYTES_MAX);
  near.close();
  far.close();
});

Deno.test("a connection that is gone is reported, and nothing is changed", async () => {
  const [near, far] = await tcpPair();
  const [here, there] = [near.localAddr, near.remoteAddr] as Deno.NetAddr[];
  near.close();
  far.close();
  assertEquals(tuneLinkSocket(here!, there!), false);
});

/** What the kernel says of the connected socket with this local end. */
function optionOf(local: Deno.NetAddr, option: number): number {
  const library = openLibc()!;
  for (const { descriptor, local: { port } } of inetDescriptors(library)) {
    if (port !== local.port) continue;
    const value = new Uint32Array(1);
    const length = new Uint8Array(new Uint32Array([4]).buffer);
    library.getsockopt(
      descriptor,
      IPPROTO_TCP,
      option,
      new Uint8Array(value.buffer),
      length,
    );
    return value[0]!;
  }
  throw new Error(`no socket with port ${local.port}`);
}
