import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import { listenTcp } from "../listen/listeners.ts";
import { openLibc } from "../libc/libc.ts";
import { SocketStore, socketStore } from "../bind/socket_store.ts";
import type { Stream } from "../stream/stream.ts";
import { type HandedOver, HandoverOffer } from "./handover_offer.ts";
import {
  ACCEPTS_PER_TURN,
  connectPackets,
  type HandoverFields,
  PacketListener,
} from "./packet_socket.ts";
import { Takeover, TakeoverRefused } from "./takeover.ts";

const LOOPBACK = { hostname: "127.0.0.1", port: 0 };
const SILENT = {
  onConnection: (socket: Stream) => socket.close(),
  onProblem: (line: string) => {
    throw new Error(line);
  },
};
let names = 0;

/** An elder that listens, and what a younger one asks it. */
class Rig implements AsyncDisposable {
  readonly address = `@tunnel-test-${Deno.pid}-${names++}`;
  readonly log = new RecordedLog();
  readonly handed: HandedOver[] = [];
  /** In earnest each process has one. */
  readonly young = new SocketStore(openLibc()!);
  readonly listeners = [
    listenTcp(LOOPBACK, SILENT),
    listenTcp(LOOPBACK, SILENT),
  ];
  readonly keys = this.listeners.map(({ address }) => `tcp ${address}`);
  readonly offer: HandoverOffer;
  isDraining = false;
  memory: HandoverFields[] = [];
  readonly ended = Promise.withResolvers<void>();

  constructor() {
    this.offer = new HandoverOffer(this.address, {
      command: "proxy",
      isDraining: () => this.isDraining,
      handedOver: (handed) => void this.handed.push(handed),
      successorEnded: this.ended.resolve,
      memory: () => this.memory,
    }, { store: socketStore()!, log: this.log });
  }

  takeover(rest: { command?: string; replace?: boolean } = {}) {
    const successor = { command: "proxy", replace: true, ...rest };
    return Takeover.open(this.address, successor, this.young);
  }

  async refusal(rest: { command?: string; replace?: boolean }) {
    const error = await assertRejects(
      () => this.takeover(rest),
      TakeoverRefused,
    );
    assertEquals(error.pid, Deno.pid);
    return error.problem;
  }

  // deno-lint-ignore require-await -- as the interface has it
  async [Symbol.asyncDispose](): Promise<void> {
    this.offer.close();
    this.young.close();
    for (const listener of this.listeners) listener.close();
  }
}

function test(name: string, fn: (rig: Rig) => Promise<void>): void {
  Deno.test({
    name,
    ignore: socketStore() === undefined,
    fn: async () => {
      await using rig = new Rig();
      await fn(rig);
    },
  });
}

test("a process that runs is replaced when that is wanted, one that drains anyway", async (rig) => {
  assertEquals(await rig.refusal({ replace: false }), "running");
  assertEquals(await rig.refusal({ command: "agent" }), "other");
  rig.isDraining = true;
  const takeover = await rig.takeover({ replace: false });
  assertEquals(takeover!.pid, Deno.pid);
  assertEquals(await rig.refusal({}), "busy");
  assertEquals([...rig.young.waiting].sort(), [...rig.keys].sort());
  takeover!.abandon();
});

test("sockets are let go of when the younger one says so, some of them earlier", async (rig) => {
  const takeover = await rig.takeover();
  const [first, second] = rig.keys;
  await takeover!.take([first!]);
  const held = [...socketStore()!.listening].map((
    [{ isHeld }, key],
  ) => [key, isHeld]);
  assertEquals(held, [[first, true], [second, false]]);
  assertEquals(rig.young.take(first)[0]!.isHeld, false);
  assertEquals(rig.young.take(second)[0]!.isHeld, true);
  await takeover!.take();
  await takeover!.over;
  assertEquals([...socketStore()!.listening.values()], []);
  assertEquals(rig.handed, [
    { isAll: false, pid: Deno.pid, isOurs: false },
    { isAll: true, pid: Deno.pid, isOurs: false },
  ]);
  // The name is free for the younger one's own offer.
  assertEquals(connectPackets(rig.address), undefined);
});

test("who fails before it takes over has done no harm", async (rig) => {
  const failing = await rig.takeover();
  await failing!.take([rig.keys[0]!]);
  failing!.abandon();
  await rig.log.until(/has ended before it took over; this one goes on/);
  assertEquals(rig.handed, [{ isAll: false, pid: Deno.pid, isOurs: false }]);
  const all = [...socketStore()!.listening.keys()];
  assertEquals(all.map(({ isHeld }) => isHeld), [false, false]);
  (await rig.takeover())!.abandon();
});

test("an elder keeps no descriptor that it is sent", async (rig) => {
  const { close } = openLibc()!;
  const [reading, writing] = pipe();
  const socket = connectPackets(rig.address)!;
  socket.send({ ask: "sockets", command: "agent" }, [writing, writing]);
  assertEquals((await socket.receive())!.words["no"], "other");
  assertEquals(await socket.receive(), null);
  socket.close();
  assertEquals(hasWriter(reading), true);
  close(writing);
  assertEquals(hasWriter(reading), false);
  close(reading);
});

function pipe(): [reading: number, writing: number] {
  const ends = new Int32Array(2);
  assertEquals(openLibc()!.pipe2(new Uint8Array(ends.buffer), 0), 0);
  return [ends[0]!, ends[1]!];
}

/** Whether somebody still has the other end of a pipe: `EPOLLHUP`, when not. */
function hasWriter(reading: number): boolean {
  const { epoll_create1, epoll_ctl, epoll_wait, close } = openLibc()!;
  const [EPOLL_CTL_ADD, EPOLLHUP] = [1, 0x10];
  const epoll = epoll_create1(0);
  const event = new Uint8Array(12);
  epoll_ctl(epoll, EPOLL_CTL_ADD, reading, event);
  const found = epoll_wait(epoll, event, 1, 0);
  close(epoll);
  return found === 0 || (event[0]! & EPOLLHUP) === 0;
}

test("an elder that dies has let go", async (rig) => {
  const takeover = await rig.takeover();
  rig.offer.close();
  await takeover!.over;
  assertEquals(rig.young.take(rig.keys[0])[0]!.isHeld, false);
});

test("a successor hears what the elder knows, and no end of it is no harm", async (rig) => {
  rig.memory = [{ port: "a" }, { port: "b", text: "x".repeat(20_000) }, {
    port: "c",
  }];
  const takeover = await rig.takeover();
  const parts: unknown[] = [];
  await takeover!.recall((part) => void parts.push(part));
  // What is too long for a packet is left out.
  assertEquals(parts, [{ port: "a" }, {}, { port: "c" }]);
  takeover!.abandon();
});

test("an elder of an older version is not asked what it knows", async (rig) => {
  rig.offer.close();
  const asked: unknown[] = [];
  const old = PacketListener.open(rig.address, async (socket) => {
    for (;;) {
      const words = await socket.receiveFields();
      if (words === null) return socket.close();
      asked.push(Object.keys(words)[0]);
      if (words.more === true) socket.send({ sockets: 0 });
      else socket.send({ yes: true, taken: true, pid: Deno.pid, agents: 0 });
    }
  })!;
  const takeover = await rig.takeover();
  await takeover!.recall(() => asked.push("part"));
  await takeover!.take();
  assertEquals(asked, ["ask", "more", "take"]);
  takeover!.abandon();
  old.close();
});

test("the elder sees when the process that took over is gone", async (rig) => {
  const takeover = await rig.takeover();
  await takeover!.take();
  let isOver = false;
  void rig.ended.promise.then(() => isOver = true);
  await settled();
  assertEquals([rig.handed.length, isOver], [1, false]);
  takeover!.abandon();
  await rig.ended.promise;
});

test("one of an older version, which hangs up at once, is not taken for gone", async (rig) => {
  const socket = connectPackets(rig.address)!;
  socket.send({ ask: "sockets", command: "proxy", replace: true });
  assertEquals((await socket.receiveFields())?.yes, true);
  socket.send({ take: "all" });
  assertEquals(await socket.receiveFields(), { taken: true });
  // The elder hangs up itself, as it always did.
  assertEquals(await socket.receiveFields(), null);
  let isOver = false;
  void rig.ended.promise.then(() => isOver = true);
  await settled();
  assertEquals(isOver, false);
  socket.close();
});

Deno.test("nobody is there where nobody listens", async () => {
  const store = new SocketStore(openLibc()!);
  const successor = { command: "proxy", replace: true };
  const folder = await Deno.makeTempDir();
  for (const address of [`@tunnel-test-none-${Deno.pid}`, `${folder}/none`]) {
    assertEquals(await Takeover.open(address, successor, store), undefined);
  }
  await Deno.remove(folder);
});

Deno.test("a path is its owner's, and a left-over one is no hindrance", async () => {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/handover.sock`;
  for (let count = 0; count < 2; count++) {
    const listener = PacketListener.open(path, (socket) => {
      void socket.receive().then((packet) => {
        // Who only looks whether somebody is there says nothing.
        if (packet !== null) socket.send({ received: packet.words["say"] });
      });
    })!;
    assertEquals(Deno.statSync(path).mode! & 0o777, 0o600);
    assertThrows(
      () => PacketListener.open(path, () => {}),
      Error,
      "address already in use",
    );
    const socket = connectPackets(path)!;
    socket.send({ say: "x" });
    assertEquals((await socket.receive())!.words, { received: "x" });
    assertEquals(socket.peer, { pid: Deno.pid, uid: Deno.uid()! });
    socket.close();
    listener.close();
  }
  await Deno.remove(folder, { recursive: true });
});

Deno.test("who ends while it is asked is nobody, and who only hangs up is another", async () => {
  const store = new SocketStore(openLibc()!);
  const successor = { command: "proxy", replace: true };
  const address = `@tunnel-test-ends-${Deno.pid}`;
  const listener = PacketListener.open(address, (socket) => socket.close())!;
  const refused = await assertRejects(
    () => Takeover.open(address, successor, store),
    TakeoverRefused,
  );
  assertEquals(refused.problem, "other");
  listener.close();
  const ending = PacketListener.open(address, (socket) => {
    ending.close();
    socket.close();
  })!;
  assertEquals(await Takeover.open(address, successor, store), undefined);
});

Deno.test("those who call again and again leave others their turns", async () => {
  const address = `@tunnel-test-many-${Deno.pid}`;
  const count = ACCEPTS_PER_TURN + 4;
  const all = Promise.withResolvers<void>();
  const turns: number[] = [];
  let inTurn = 0;
  const listener = PacketListener.open(address, (socket) => {
    socket.close();
    if (inTurn++ > 0) return;
    queueMicrotask(() => {
      turns.push(inTurn);
      inTurn = 0;
      if (turns.reduce((sum, each) => sum + each) === count) all.resolve();
    });
  })!;
  const callers = Array.from({ length: count }, () => connectPackets(address)!);
  await all.promise;
  assertEquals(turns, [ACCEPTS_PER_TURN, 4]);
  for (const caller of callers) caller.close();
  listener.close();
});

Deno.test("what is no packet of ours ends the conversation", async () => {
  const address = `@tunnel-test-odd-${Deno.pid}`;
  const received = Promise.withResolvers<unknown>();
  const listener = PacketListener.open(address, (socket) => {
    void socket.receive().then((packet) => {
      received.resolve(packet);
      socket.close();
    });
  })!;
  const socket = connectPackets(address)!;
  socket.send([1] as never);
  assertEquals(await received.promise, null);
  assertEquals(await socket.receive(), null);
  socket.close();
  listener.close();
});
