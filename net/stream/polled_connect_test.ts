import { assert, assertEquals, assertRejects } from "@std/assert";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { Crowd } from "../../tests/support/peers/crowd.ts";
import {
  onPath,
  testPolled as test,
} from "../../tests/support/memory/socket_kinds.ts";
import { Listener } from "../../tests/support/peers/sockets.ts";
import { conduitOf } from "./stream_conduit.ts";
import { openLibc } from "../libc/libc.ts";
import { codeOf } from "../../platform/errors/error_code.ts";
import {
  connectPolledTcp,
  connectPolledUnix,
  startPolledTcp,
} from "./polled_connect.ts";
import { Socket } from "./socket.ts";
import { StreamDescriptor } from "./stream_descriptor.ts";
import type { DatagramAddress } from "../libc/socket_address.ts";
import { Poller } from "../poll/poller.ts";

const library = openLibc()!;
const LOOPBACK = { hostname: "127.0.0.1", port: 0 };
const NEVER = new AbortController().signal;
const SHUT_WR = 1;

async function codeWhen(connecting: Promise<unknown>): Promise<string> {
  return codeOf(await assertRejects(() => connecting));
}

test("a refusal has its code, and where nothing is has its own", async (poller) => {
  const listener = Deno.listen(LOOPBACK);
  const { hostname, port } = listener.addr as Deno.NetAddr;
  listener.close();
  const tcp = (port: number) =>
    codeWhen(connectPolledTcp({ hostname, port }, NEVER, poller)!);
  assertEquals(await tcp(port), "ECONNREFUSED");
  assertEquals(await tcp(0), "ECONNREFUSED");
  await onPath(async (path) => {
    const unix = (path: string) =>
      codeWhen(connectPolledUnix(path, NEVER, poller)!);
    assertEquals(await unix(path), "ENOENT");
    const listener = Deno.listen({ transport: "unix", path });
    await Deno.rename(path, `${path}-left`); // Or it would be removed.
    listener.close();
    assertEquals(await unix(`${path}-left`), "ECONNREFUSED");
    assertEquals(await unix(`${path}-left/below`), "ENOTDIR");
  });
});

test("on this machine it is there at once, and what was sent meanwhile is received", async (poller) => {
  using listener = Deno.listen(LOOPBACK);
  const { hostname, port } = listener.addr as Deno.NetAddr;
  const stream = startPolledTcp({ hostname, port }, poller);
  assert(stream instanceof StreamDescriptor);
  const socket = new Socket(stream);
  const peer = await listener.accept();
  await peer.write(new TextEncoder().encode("hello"));
  peer.close();
  await settled();
  const received = new Uint8Array(16);
  assertEquals(await socket.read(received), 5);
  assertEquals(await socket.read(received), null);
  socket.close();
});

test("a name, a zone or too long a path is for the platform", (poller) => {
  for (const hostname of ["localhost", "fe80::1%lo", ""]) {
    const to = { hostname, port: 1 };
    assertEquals(connectPolledTcp(to, NEVER, poller), undefined);
  }
  const long = "x".repeat(108);
  assertEquals(connectPolledUnix(long, NEVER, poller), undefined);
  return Promise.resolve();
});

test("an IPv4 address that is written as IPv6 is dialed over IPv4", async (poller) => {
  using listener = Deno.listen(LOOPBACK);
  const { port } = listener.addr as Deno.NetAddr;
  const to = { hostname: "::ffff:127.0.0.1", port };
  const socket = await connectPolledTcp(to, NEVER, poller)!;
  const peer = await listener.accept();
  assertEquals(socket.remoteAddress, `127.0.0.1:${port}`);
  peer.close();
  socket.close();
});

test("who has given up before does not begin", async (poller) => {
  const reason = new Error("given up");
  const error = await assertRejects(() =>
    connectPolledTcp(
      { ...LOOPBACK, port: 9 },
      AbortSignal.abort(reason),
      poller,
    )!
  );
  assertEquals(error, reason);
});

test("a connection that nobody can wait for is an error", async () => {
  using crowd = new Crowd();
  const blind = new Poller(library, []);
  const open = Deno.listen(LOOPBACK);
  const { hostname, port } = open.addr as Deno.NetAddr;
  const at = { hostname, port };
  assertEquals(await codeWhen(connect(at, blind)), "ENFILE");
  assertEquals(await codeWhen(connect(crowd.address, blind)), "ENFILE");
  (await open.accept()).close();
  open.close();
});

// deno-lint-ignore require-await -- what it throws at once is a rejection, too
async function connect(to: DatagramAddress, poller: Poller) {
  return connectPolledTcp(to, NEVER, poller)!;
}

test("who gives up while it is under way leaves nothing", async (poller) => {
  using crowd = new Crowd();
  const controller = new AbortController();
  const connecting = connectPolledTcp(
    crowd.address,
    controller.signal,
    poller,
  )!;
  await settled();
  const reason = new Error("the deadline");
  controller.abort(reason);
  controller.abort(new Error("again"));
  assertEquals(await assertRejects(() => connecting), reason);
});

test("an end that comes together with the connection is received", async (poller) => {
  using crowd = new Crowd();
  const connecting = connectPolledTcp(crowd.address, NEVER, poller)!;
  await settled();
  // Without a turn of the event loop: all that happens is told at once.
  const accepted: number[] = [];
  crowd.leave();
  const words = new TextEncoder().encode("busy, go away");
  const sleep = new Int32Array(new SharedArrayBuffer(4));
  let isHeard = false;
  for (let tries = 0; tries < 1_000 && !isHeard; tries++) {
    const descriptor = crowd.accept();
    if (descriptor < 0) {
      Atomics.wait(sleep, 0, 0, 10);
      continue;
    }
    accepted.push(descriptor);
    // Those of the crowd have gone: only the last one has somebody behind it.
    const size = BigInt(words.length);
    isHeard = library.send(descriptor, words, size, 0x4000) > 0 &&
      library.recv(descriptor, new Uint8Array(1), 1n, 0x40) < 0;
    library.shutdown(descriptor, SHUT_WR);
  }
  assert(isHeard, "the connection never came");
  const listener = new Listener(conduitOf(await connecting));
  await listener.until(() => listener.ended);
  assertEquals(listener.received, words);
  listener.conduit.end();
  await listener.closed();
  for (const descriptor of accepted) library.close(descriptor);
});
