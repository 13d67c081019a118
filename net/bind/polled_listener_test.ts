import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import {
  onPath,
  testPolled as test,
} from "../../tests/support/memory/socket_kinds.ts";
import { Socket } from "../stream/socket.ts";
import { denoStream } from "../stream/platform_stream.ts";
import { openLibc } from "../libc/libc.ts";
import {
  IPPROTO_TCP,
  socketOption,
  TCP_NODELAY,
} from "../libc/socket_option.ts";
import { inetDescriptors } from "../libc/sockets.ts";
import { codeOf } from "../../platform/errors/error_code.ts";
import {
  listenPolledTcp,
  listenPolledUnix,
  type PolledListener,
} from "./polled_listener.ts";
import { Poller } from "../poll/poller.ts";

const library = openLibc()!;
const LOOPBACK = { hostname: "127.0.0.1", port: 0 };
const BACKLOG = 256;

function dial({ address: { hostname, port } }: PolledListener) {
  return Deno.connect({ hostname, port });
}

test("addresses read as the platform writes them", async (poller) => {
  const places = [
    ["127.0.0.1", "127.0.0.1"],
    ["::1", "::1"],
    // All interfaces: which of its addresses a caller came to, it has to ask.
    ["::", "127.0.0.1"],
    ["::", "127.0.7.1"],
    ["::", "::1"],
    ["0.0.0.0", "127.0.7.1"],
  ] as const;
  for (const [hostname, to] of places) {
    const ours = listenPolledTcp({ hostname, port: 0 }, 1, poller)!;
    const theirs = Deno.listen({ hostname, port: 0 });
    const accepted = [
      { listener: ours, port: ours.address.port, accept: () => ours.accept() },
      {
        listener: theirs,
        port: (theirs.addr as Deno.NetAddr).port,
        accept: async () => denoStream(await theirs.accept()),
      },
    ].map(async ({ listener, port, accept }) => {
      const peer = await Deno.connect({ hostname: to, port });
      const socket = await accept();
      const local = peer.localAddr as Deno.NetAddr;
      const { remoteAddress, localAddress } = socket;
      for (const one of [peer, socket, listener]) one.close();
      assertEquals(socket.localAddress, localAddress, "asked once");
      return [
        remoteAddress.replace(`:${local.port}`, ":PORT"),
        localAddress.replace(`:${port}`, ":PORT"),
      ];
    });
    const [our, their] = await Promise.all(accepted);
    assertEquals(our, their);
    assert(our?.[1]?.includes(to), our?.[1]);
  }
});

test("a name or an address with a zone is for the platform", (poller) => {
  for (const hostname of ["localhost", "fe80::1%lo", "", "1.2.3"]) {
    const at = { hostname, port: 0 };
    assertEquals(listenPolledTcp(at, BACKLOG, poller), undefined);
  }
  return Promise.resolve();
});

test("who came before anybody accepts is accepted, each once", async (poller) => {
  const listener = listenPolledTcp(LOOPBACK, BACKLOG, poller)!;
  const peers = await Promise.all(
    Array.from({ length: 200 }, () => dial(listener)),
  );
  const sockets = [];
  for (const _ of peers) sockets.push(await listener.accept());
  const ports = peers.map((peer) => (peer.localAddr as Deno.NetAddr).port);
  const seen = sockets.map(({ remoteAddress }) =>
    +remoteAddress.split(":")[1]!
  );
  assertEquals(seen.sort(), ports.sort());
  for (const one of [...peers, ...sockets, listener]) one.close();
});

test("a crowd lets others have their turn", async (poller) => {
  const listener = listenPolledTcp(LOOPBACK, BACKLOG, poller)!;
  const peers = await Promise.all(
    Array.from({ length: 200 }, () => dial(listener)),
  );
  let [turn, inTurn, most] = [0, 0, 0];
  let last = -1;
  let isOver = false;
  const turns = (async () => {
    for (; !isOver; turn++) await settled();
  })();
  for (const _ of peers) {
    (await listener.accept()).close();
    if (turn !== last) [last, inTurn] = [turn, 0];
    most = Math.max(most, ++inTurn);
  }
  isOver = true;
  await turns;
  assert(most <= 128, `${most} in one turn`);
  for (const one of [...peers, listener]) one.close();
});

test("a peer that has gone again is accepted, and its reset is read", async (poller) => {
  const listener = listenPolledTcp(LOOPBACK, BACKLOG, poller)!;
  denoStream(await dial(listener)).reset();
  const peer = await dial(listener);
  const gone = new Socket(await listener.accept());
  const error = await assertRejects(() => gone.read(new Uint8Array(1)));
  assertEquals(codeOf(error), "ECONNRESET");
  const here = await listener.accept();
  for (const one of [gone, here, peer, listener]) one.close();
});

test("closing it ends the wait, and no further one begins", async (poller) => {
  const listener = listenPolledTcp(LOOPBACK, BACKLOG, poller)!;
  const waiting = listener.accept();
  listener.close();
  listener.close();
  await assertRejects(() => waiting, Deno.errors.BadResource);
  await assertRejects(() => listener.accept(), Deno.errors.BadResource);
});

test("a port or a path in use is an error with its code", async (poller) => {
  const listener = listenPolledTcp(LOOPBACK, BACKLOG, poller)!;
  const error = assertThrows(() =>
    listenPolledTcp(listener.address, BACKLOG, poller)
  );
  assertEquals(codeOf(error), "EADDRINUSE");
  listener.close();
  await onPath((path) => {
    const unix = listenPolledUnix(path, BACKLOG, 0o770, poller)!;
    assertEquals(unix.address, { hostname: path, port: 0 });
    const twice = assertThrows(() =>
      listenPolledUnix(path, BACKLOG, 0o770, poller)
    );
    assertEquals(codeOf(twice), "EADDRINUSE");
    const nowhere = assertThrows(() =>
      listenPolledUnix(`${path}/no/folder`, BACKLOG, 0o770, poller)
    );
    assertEquals(codeOf(nowhere), "ENOTDIR");
    unix.close();
    return Promise.resolve();
  });
});

test("who is there already is had without a promise, and sends at once", async (poller) => {
  const listener = listenPolledTcp(LOOPBACK, BACKLOG, poller)!;
  assertEquals(listener.acceptNow(), undefined);
  const peers = await Promise.all([dial(listener), dial(listener)]);
  const sockets = [listener.acceptNow()!, listener.acceptNow()!];
  assertEquals(listener.acceptNow(), undefined);
  const { port } = listener.address;
  const delays = [...inetDescriptors(library)]
    .filter(({ local }) => local.port === port)
    .map(({ descriptor }) =>
      socketOption(library, descriptor, IPPROTO_TCP, TCP_NODELAY)
    );
  assertEquals(delays, [1, 1, 1], "the listener's, and what they have from it");
  const next = listener.accept();
  const late = await dial(listener);
  const accepted = await next;
  for (const one of [...peers, ...sockets, late, accepted, listener]) {
    one.close();
  }
  assertEquals(listener.acceptNow(), undefined);
});

test("a path of any letters works, and too long a one is for the platform", async (poller) => {
  await onPath(async (path) => {
    const listener = listenPolledUnix(
      `${path}-schlüssel-鍵`,
      BACKLOG,
      0o770,
      poller,
    )!;
    const peer = await Deno.connect({
      transport: "unix",
      path: `${path}-schlüssel-鍵`,
    });
    const socket = await listener.accept();
    assertEquals(socket.remoteAddress, "unix");
    assertEquals(socket.localAddress, `${path}-schlüssel-鍵`);
    const uid = Deno.uid();
    assertEquals(socket.peerCredentials(), { pid: Deno.pid, uid });
    for (const one of [peer, socket, listener]) one.close();
    const long = `${path}${"x".repeat(108)}`;
    assertEquals(listenPolledUnix(long, BACKLOG, 0o770, poller), undefined);
  });
});

test("its path goes with it, unless that has gone elsewhere", async (poller) => {
  await onPath(async (path) => {
    listenPolledUnix(path, BACKLOG, 0o770, poller)!.close();
    await assertRejects(() => Deno.lstat(path), Deno.errors.NotFound);
    const listener = listenPolledUnix(path, BACKLOG, 0o770, poller)!;
    await Deno.rename(path, `${path}-left`);
    listener.close();
    assertEquals((await Deno.lstat(`${path}-left`)).isSocket, true);
  });
});

test("a listener that nobody can wait for is none", () => {
  const error = assertThrows(() =>
    listenPolledTcp(LOOPBACK, BACKLOG, new Poller(library, []))
  );
  assertEquals(codeOf(error), "ENFILE");
  return Promise.resolve();
});

test("who is queued comes when a patient listener is closed, and nobody else", async (poller) => {
  for (const isAwaited of [false, true]) {
    const listener = listenPolledTcp(LOOPBACK, BACKLOG, poller)!;
    const first = isAwaited ? listener.accept() : undefined;
    const queued = await Promise.all([1, 2, 3].map(() => dial(listener)));
    listener.close(true);
    const accepted = [
      await (first ?? listener.accept()),
      await listener.accept(),
      await listener.accept(),
    ];
    await assertRejects(() => listener.accept(), Deno.errors.BadResource);
    const served = accepted.map((stream) => new Socket(stream));
    for (const one of served) await one.writeAll(new Uint8Array([7]));
    const answer = new Uint8Array(1);
    for (const conn of queued) {
      assertEquals([await conn.read(answer), answer[0]], [1, 7]);
      conn.close();
    }
    for (const one of served) one.close();
  }
});
