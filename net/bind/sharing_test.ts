import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { listenTcp, listenUnix } from "../listen/listeners.ts";
import { openDatagramSocket } from "../datagram/datagram_socket.ts";
import { openLibc } from "../libc/libc.ts";
import { ListenError } from "./listen_error.ts";
import type { Stream } from "../stream/stream.ts";
import { type Sharing, socketStore } from "./socket_store.ts";

const store = socketStore()!;
const LOOPBACK = { hostname: "127.0.0.1", port: 0 };

/** A process that shares; tests are all processes at once. */
class Shared implements Sharing {
  isAlone = false;
  isHeld = false;
  readonly reports: string[] = [];
  readonly chosen: number[] = [];

  portFor(): number | undefined {
    return this.chosen.shift();
  }

  chose(kind: string, _hostname: string, port: number): void {
    this.reports.push(`${kind} ${port > 0}`);
  }

  opened(key: string): void {
    this.reports.push(`opened ${key}`);
  }

  closed(key: string): void {
    this.reports.push(`closed ${key}`);
  }

  settled(): Promise<void> {
    return Promise.resolve();
  }
}

function test(
  name: string,
  fn: (shared: Shared) => void | Promise<void>,
): void {
  Deno.test({
    name,
    ignore: socketStore() === undefined,
    fn: async () => {
      const shared = new Shared();
      store.sharing = shared;
      try {
        await fn(shared);
      } finally {
        store.sharing = undefined;
      }
      assertEquals([...store.listening.values()], [], "somebody still listens");
      assertEquals(store.waiting, [], "something waits");
    },
  });
}

function accepting(come: (stream: Stream) => void) {
  return {
    onConnection: (stream: Stream) => {
      come(stream);
      stream.close();
    },
    onProblem: (line: string) => {
      throw new Error(line);
    },
  };
}

const connect = (port: number) => Deno.connect({ hostname: "127.0.0.1", port });

test("a port that the system chose is the others' too, and nobody else's", (shared) => {
  shared.isAlone = true;
  const first = listenTcp(LOOPBACK, accepting(() => {}));
  shared.isAlone = false;
  shared.chosen.push(first.port);
  const second = listenTcp(LOOPBACK, accepting(() => {}));
  assertEquals(second.port, first.port);
  const key = `tcp ${first.address}`;
  assertEquals(shared.reports, [`opened ${key}`, "tcp true", `opened ${key}`]);
  store.sharing = undefined;
  const again = () =>
    listenTcp({ ...LOOPBACK, port: first.port }, accepting(() => {}));
  assertThrows(again, ListenError, "something listens there already");
  store.sharing = shared;
  // The first of them finds out, although the others share.
  shared.isAlone = true;
  assertThrows(again, ListenError, "something listens there already");
  first.close();
  second.close();
});

test("UDP is shared in the same way", async (shared) => {
  const options = { isServer: true };
  const first = await openDatagramSocket(LOOPBACK, options);
  const second = await openDatagramSocket(first.address, options);
  assertEquals(second.address, first.address);
  for (const one of [first, second]) {
    await new Promise<void>((resolve) => one.close(resolve));
  }
  assertEquals(
    shared.reports.filter((one) => one.startsWith("closed")).length,
    2,
  );
});

test("what is held listens once it is started", async (shared) => {
  shared.isHeld = true;
  const free = await freePort();
  const came = Promise.withResolvers<void>();
  const held = listenTcp(
    { ...LOOPBACK, port: free },
    accepting(() => came.resolve()),
  );
  await assertRejects(() => connect(free), Deno.errors.ConnectionRefused);
  store.start();
  const client = await connect(free);
  await came.promise;
  client.close();
  held.close();
});

test("a process accepts for another one, until that can again", async (shared) => {
  shared.isAlone = true;
  let count = 0;
  const helper = listenTcp(LOOPBACK, accepting(() => count++));
  shared.isAlone = false;
  shared.isHeld = true;
  const other = listenTcp(
    { ...LOOPBACK, port: helper.port },
    accepting(() => {
      throw new Error("it is held");
    }),
  );
  const [, second] = [...store.listening.keys()];
  const { dup, listen } = openLibc()!;
  listen(second!.descriptor, 16);
  store.adopt(dup(second!.descriptor));
  for (let more = 0; more < 20; more++) {
    const client = await connect(helper.port);
    assertEquals(await client.read(new Uint8Array(1)), null);
    client.close();
  }
  assertEquals(count, 20);
  store.letGo();
  helper.close();
  other.close();
});

test("connections to a path are passed on, also to one that lets go", async (shared) => {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/a.sock`;
  const key = `unix ${path}`;
  let came = Promise.withResolvers<void>();
  const listener = await listenUnix(path, accepting(() => came.resolve()));
  assertEquals(shared.reports, [`opened ${key}`]);
  const { accept4 } = openLibc()!;
  const [socket] = store.listening.keys();
  const descriptor = openLibc()!.dup(socket!.descriptor);
  const pass = async () => {
    came = Promise.withResolvers<void>();
    const client = await Deno.connect({ transport: "unix", path });
    const length = new Uint8Array(4);
    const name = new Uint8Array(128);
    store.pass(key, accept4(descriptor, name, length, 0x80800));
    assertEquals(await client.read(new Uint8Array(1)), null);
    client.close();
    await came.promise;
  };
  await pass();
  store.handOver();
  await pass();
  assertEquals(shared.reports, [`opened ${key}`, `closed ${key}`]);
  listener.close();
  openLibc()!.close(descriptor);
  await Deno.remove(folder, { recursive: true });
});

async function freePort(): Promise<number> {
  const listener = Deno.listen(LOOPBACK);
  const { port } = listener.addr as Deno.NetAddr;
  listener.close();
  await new Promise((resolve) => setTimeout(resolve, 0));
  return port;
}
