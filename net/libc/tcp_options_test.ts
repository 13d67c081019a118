import { assert, assertEquals } from "@std/assert";
import { tcpPair } from "../../tests/support/peers/sockets.ts";
import { openLibc } from "./libc.ts";
import { tuneLinkSocket } from "./platform_sockets.ts";
import { IPPROTO_TCP, socketOption, TCP_NODELAY } from "./socket_option.ts";
import { inetDescriptors, peerAddress } from "./sockets.ts";
import { probePeer, UNSENT_BYTES_MAX } from "./tcp_options.ts";

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
      local.port === port && peerAddress(library, descriptor)
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
    return socketOption(library, descriptor, IPPROTO_TCP, option)!;
  }
  throw new Error(`no socket with port ${local.port}`);
}
