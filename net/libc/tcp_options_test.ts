import { assert, assertEquals } from "@std/assert";
import { tcpPair } from "../../tests/support/peers/sockets.ts";
import { errnoName, inetDescriptors, openLibc } from "./libc.ts";
import { probePeer, tuneLinkSocket, UNSENT_BYTES_MAX } from "./tcp_options.ts";

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

Deno.test("a machine that is gone is found within ten seconds by the kernel", async () => {
  const [near, far] = await tcpPair();
  const library = openLibc()!;
  const { port } = near.localAddr as Deno.NetAddr;
  const own = [...inetDescriptors(library)]
    .find(({ local, descriptor }) =>
      local.port === port && errnoName(library.getpeername, descriptor)
    )!;
  probePeer(own.descriptor, 4_000);
  const local = near.localAddr as Deno.NetAddr;
  const [idle, interval, probes, userTimeoutMs] = [4, 5, 6, 18]
    .map((option) => optionOf(local, option));
  assertEquals([idle, interval, probes], [4, 1, 5]);
  assertEquals(userTimeoutMs, 9_000);
  near.close();
  far.close();
  // What all connections have suffices.
  probePeer(undefined, 4_000);
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
