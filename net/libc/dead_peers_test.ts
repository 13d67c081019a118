import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { tcpPair } from "../../tests/support/peers/sockets.ts";
import {
  DEAD_PEERS_LOOK_INTERVAL_MS,
  DeadPeers,
  KEEPALIVE,
} from "./dead_peers.ts";
import { openLibc } from "./libc.ts";
import {
  IPPROTO_TCP,
  SO_KEEPALIVE,
  socketOption,
  SOL_SOCKET,
} from "./socket_option.ts";
import { inetDescriptors, peerAddress } from "./sockets.ts";

const TCP_KEEPIDLE = 4;
const TCP_KEEPINTVL = 5;
const TCP_KEEPCNT = 6;

/** As many rounds as a look can need. */
function look(timers: FakeTimers): void {
  timers.advance(DEAD_PEERS_LOOK_INTERVAL_MS);
  for (let round = 0; round < 100; round++) timers.advance(0);
}

Deno.test("the kernel is told to ask peers of sockets that have lived a while", async () => {
  const timers = new FakeTimers();
  const watch = new DeadPeers(timers);
  const [near, far] = await tcpPair();
  const { port } = near.localAddr as Deno.NetAddr;
  assertEquals(optionOf(port, SOL_SOCKET, SO_KEEPALIVE), 0);

  look(timers);
  assertEquals(optionOf(port, SOL_SOCKET, SO_KEEPALIVE), 1);
  assertEquals(optionOf(port, IPPROTO_TCP, TCP_KEEPIDLE), KEEPALIVE.idleS);
  assertEquals(optionOf(port, IPPROTO_TCP, TCP_KEEPINTVL), KEEPALIVE.intervalS);
  assertEquals(optionOf(port, IPPROTO_TCP, TCP_KEEPCNT), KEEPALIVE.probes);

  watch.stop();
  assertEquals(timers.pendingCount, 0);
  near.close();
  far.close();
});

Deno.test("what a listening socket accepts later has been told, too", async () => {
  const timers = new FakeTimers();
  const watch = new DeadPeers(timers);
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  look(timers);

  const { port } = listener.addr as Deno.NetAddr;
  const near = await Deno.connect({ hostname: "127.0.0.1", port });
  const accepted = await listener.accept();
  const caller = near.localAddr as Deno.NetAddr;
  const isAccepted = (descriptor: number) =>
    peerAddress(openLibc()!, descriptor)?.port === caller.port;
  assertEquals(optionOf(port, SOL_SOCKET, SO_KEEPALIVE, isAccepted), 1);
  watch.stop();
  near.close();
  accepted.close();
});

/** What the kernel says of the socket with this local port. */
function optionOf(
  port: number,
  level: number,
  option: number,
  isMeant: (descriptor: number) => boolean = () => true,
): number | undefined {
  const library = openLibc()!;
  const [found] = [...inetDescriptors(library)].filter((
    { descriptor, local },
  ) => local.port === port && isMeant(descriptor));
  return socketOption(library, found!.descriptor, level, option);
}
