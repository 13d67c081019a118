import { assert, assertEquals, assertRejects } from "@std/assert";
import { listenHttp, listenTcp, listenUnix } from "../listen/listeners.ts";
import { openDatagramSocket } from "../datagram/datagram_socket.ts";
import { openLibc } from "../libc/libc.ts";
import type { Stream } from "../stream/stream.ts";
import { keyOfDescriptor } from "./socket_key.ts";
import { socketStore } from "./socket_store.ts";

const store = socketStore()!;
const library = openLibc()!;
const ignore = socketStore() === undefined;
const LOOPBACK = { hostname: "127.0.0.1", port: 0 };

function test(name: string, fn: () => Promise<void>): void {
  Deno.test({
    name,
    ignore,
    fn: async () => {
      await fn();
      assertEquals([...store.listening.values()], [], "somebody still listens");
      assertEquals(store.waiting, [], "something waits");
    },
  });
}

const accepting = () => {
  const { promise, resolve } = Promise.withResolvers<Stream>();
  return {
    promise,
    events: {
      onConnection: resolve,
      onProblem: (line: string) => {
        throw new Error(line);
      },
    },
  };
};

/** The descriptor of the only listening socket, as another process would have it. */
function second(): number {
  const [socket] = store.listening.keys();
  return library.dup(socket!.descriptor);
}

test("a socket is known by its kind and address", async () => {
  const tcp = listenTcp(LOOPBACK, accepting().events);
  const udp = await openDatagramSocket({ ...LOOPBACK, port: tcp.port });
  const everywhere = listenTcp({ hostname: "", port: 0 }, accepting().events);
  assertEquals([...store.listening.values()].sort(), [
    `tcp 127.0.0.1:${tcp.port}`,
    `tcp [::]:${everywhere.port}`,
    `udp 127.0.0.1:${tcp.port}`,
  ]);
  const peer = await openDatagramSocket(LOOPBACK, { peer: udp.address });
  assertEquals(store.listening.size, 3, "a socket for one peer is nobody's");
  assertEquals(keyOfDescriptor(library, 0), undefined);
  for (const one of [tcp, udp, everywhere, peer]) one.close();
});

test("who listens takes the socket that waits, with whoever is in its queue", async () => {
  const before = listenHttp(LOOPBACK, () => new Response());
  const waiting = second();
  before.close();
  const key = `tcp 127.0.0.1:${before.port}`;
  assertEquals(store.put(waiting), key);
  const client = await Deno.connect({ port: before.port });
  const { promise, events } = accepting();
  const after = listenTcp({ hostname: "127.0.0.1", port: before.port }, events);
  (await promise).close();
  client.close();
  after.close();
});

test("a socket that is held accepts nobody until it is started", async () => {
  const before = accepting();
  const old = listenTcp(LOOPBACK, before.events);
  assertEquals(store.put(second(), true), `tcp ${old.address}`);
  const after = accepting();
  const young = listenTcp(
    { hostname: "127.0.0.1", port: old.port },
    after.events,
  );
  const first = await Deno.connect({ port: old.port });
  (await before.promise).close();
  // Both are ours here, so who hands over has to be told from who takes over.
  const [oldest] = [...store.listening.keys()];
  oldest!.handedOver();
  const next = await Deno.connect({ port: old.port });
  store.start();
  (await after.promise).close();
  for (const one of [first, next, young, old]) one.close();
});

test("a path stays with its socket", async () => {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/a.sock`;
  const old = await listenUnix(path, accepting().events);
  store.put(second());
  store.handOver();
  const { promise, events } = accepting();
  const client = await Deno.connect({ transport: "unix", path });
  const young = await listenUnix(path, events);
  old.close();
  assert(Deno.statSync(path).isSocket);
  (await promise).close();
  client.close();
  young.close();
  await assertRejects(() => Deno.stat(path), Deno.errors.NotFound);
  await Deno.remove(folder);
});

test("a UDP socket that was handed over is read elsewhere and still answers", async () => {
  const old = await openDatagramSocket(LOOPBACK);
  const received: string[] = [];
  const hear = (name: string) => ({
    onDatagram: (bytes: Uint8Array) =>
      void received.push(`${name} ${new TextDecoder().decode(bytes)}`),
    onError: (error: Error) => {
      throw error;
    },
  });
  old.listen(hear("old"));
  store.put(second());
  store.handOver();
  const young = await openDatagramSocket(old.address);
  const client = await openDatagramSocket(LOOPBACK);
  const answered = Promise.withResolvers<number>();
  client.listen({
    onDatagram: (_bytes, _host, port) => answered.resolve(port),
    onError: answered.reject,
  });
  const came = Promise.withResolvers<void>();
  young.listen({
    ...hear("young"),
    onDatagram: (bytes) => {
      hear("young").onDatagram(bytes);
      came.resolve();
    },
  });
  client.send(new TextEncoder().encode("x"), young.address);
  await came.promise;
  assertEquals(received, ["young x"]);
  old.send(new Uint8Array(1), client.address);
  assertEquals(await answered.promise, old.address.port);
  for (const one of [old, young, client]) {
    await new Promise<void>((resolve) => one.close(resolve));
  }
});

test("what nobody wants is closed, and what is no listening socket not taken", async () => {
  const listener = listenTcp(LOOPBACK, accepting().events);
  store.put(second());
  assertEquals(store.put(second()), undefined, "there is one already");
  assertEquals(store.put(library.dup(0)), undefined);
  assertEquals(store.close(), [`tcp ${listener.address}`]);
  listener.close();
  await assertRejects(() => Deno.connect({ port: listener.port }));
});
