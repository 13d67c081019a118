import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { tcpPair } from "../../tests/support/peers/sockets.ts";
import {
  DEAD_PEERS_LOOK_INTERVAL_MS,
  DeadPeers,
  KEEPALIVE,
} from "./dead_peers.ts";
import { openLibc } from "./libc.ts";
import { inetDescriptors } from "./sockets.ts";

const SOL_SOCKET = 1;
const SO_KEEPALIVE = 9;
const IPPROTO_TCP = 6;
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
    peerPort(descriptor) === caller.port;
  assertEquals(optionOf(port, SOL_SOCKET, SO_KEEPALIVE, isAccepted), 1);
  watch.stop();
  near.close();
  accepted.close();
});

function peerPort(descriptor: number): number | undefined {
  const address = new Uint8Array(128);
  const length = new Uint8Array(new Uint32Array([128]).buffer);
  const failed = openLibc()!.getpeername(descriptor, address, length);
  return failed === 0 ? (address[2]! << 8) | address[3]! : undefined;
}

/** What the kernel says of the socket with this local port. */
function optionOf(
  port: number,
  level: number,
  option: number,
  isMeant: (descriptor: number) => boolean = () => true,
): number {
  const library = openLibc()!;
  for (const { descriptor, local } of inetDescriptors(library)) {
    if (local.port !== port || !isMeant(descriptor)) continue;
    const value = new Uint32Array(1);
    library.getsockopt(
      descriptor,
      level,
      option,
      new Uint8Array(value.buffer),
      new Uint8Array(new Uint32Array([4]).buffer),
    );
    return value[0]!;
  }
  throw new Error(`no socket with port ${port}`);
}
