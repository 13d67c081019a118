import { assertEquals } from "@std/assert";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { ConduitProbe } from "../../tests/support/memory/conduit_probe.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  type DatagramFlow,
  type DatagramListener,
  listenDatagrams,
  LISTENER_WAITING_BYTES_MAX,
  REOPEN_MS_MAX,
} from "./datagram_listener.ts";

import { type DatagramEvents, openDatagramSocket } from "./datagram_socket.ts";

const IDLE_MS = 1000;

interface Arrangement {
  readonly listener: DatagramListener;
  readonly timers: FakeTimers;
  /** The next caller's flow. */
  readonly nextFlow: () => Promise<ConduitProbe>;
  /** A caller's socket that sends to the listener. */
  readonly caller: () => { socket: Socket; say: (text: string) => void };
}

async function arrange(
  check: (arrangement: Arrangement) => Promise<void>,
): Promise<void> {
  const timers = new FakeTimers();
  const flows: ConduitProbe[] = [];
  let wake = () => {};
  const listener = await listenDatagrams({
    hostname: "127.0.0.1",
    port: 0,
    timers,
    idleTimeoutMs: IDLE_MS,
    onFlow(flow) {
      flows.push(new ConduitProbe(flow));
      wake();
    },
  });
  const port = Number(listener.address.split(":")[1]);
  const sockets: Socket[] = [];
  try {
    await check({
      listener,
      timers,
      async nextFlow() {
        while (flows.length === 0) {
          await new Promise<void>((resolve) => wake = resolve);
        }
        return flows.shift()!;
      },
      caller() {
        const socket = createSocket("udp4");
        sockets.push(socket);
        return { socket, say: (text) => socket.send(text, port, "127.0.0.1") };
      },
    });
  } finally {
    for (const socket of sockets) socket.close();
    listener.close();
  }
}

Deno.test("each UDP caller becomes a flow that is answered alone", async () => {
  await arrange(async ({ caller, nextFlow }) => {
    const one = caller();
    one.say("from one");
    const flowOfOne = await nextFlow();
    await flowOfOne.received(8);
    const two = caller();
    two.say("from two");
    const flowOfTwo = await nextFlow();
    await flowOfTwo.received(8);
    assertEquals([flowOfOne.text, flowOfTwo.text], ["from one", "from two"]);

    const answer = once(two.socket, "message");
    flowOfTwo.send("to two");
    assertEquals(String((await answer)[0]), "to two");
    one.say("!");
    await flowOfOne.received(9);
    assertEquals(flowOfOne.chunks.length, 2);
  });
});

Deno.test("a UDP caller that is silent is gone, and may come again", async () => {
  await arrange(async ({ caller, nextFlow, timers }) => {
    const { say } = caller();
    say("a");
    const flow = await nextFlow();
    await flow.received(1);
    timers.advance(IDLE_MS);
    assertEquals(await flow.closed, {
      kind: "reset",
      reason: "no datagram in either direction for 1000 ms",
    });
    say("b");
    const again = await nextFlow();
    await again.received(1);
    assertEquals(again.text, "b");
  });
});

Deno.test("closing the socket ends its flows", async () => {
  await arrange(async ({ caller, nextFlow, listener }) => {
    caller().say("a");
    const flow = await nextFlow();
    listener.close();
    assertEquals((await flow.closed).kind, "reset");
  });
});

/** Flows that nobody listens to yet: one for each list of datagrams. */
async function waitingFlows(
  ...said: readonly (readonly (string | Uint8Array)[])[]
): Promise<readonly [DatagramListener, readonly DatagramFlow[]]> {
  const flows: DatagramFlow[] = [];
  const arrived = Promise.withResolvers<void>();
  const listener = await listenDatagrams({
    hostname: "127.0.0.1",
    port: 0,
    timers: new FakeTimers(),
    idleTimeoutMs: IDLE_MS,
    onFlow(flow) {
      if (flows.push(flow) === said.length) arrived.resolve();
    },
  });
  const port = Number(listener.address.split(":")[1]);
  for (const datagrams of said) {
    const socket = createSocket("udp4");
    for (const datagram of datagrams) await sent(socket, datagram, port);
    socket.close();
  }
  await arrived.promise; // The last one's is heard last.
  return [listener, flows];
}

Deno.test("the first datagram can be taken, to be sent ahead", async () => {
  const said = [["first", "second"], ["elsewhere"]];
  const [listener, [flow]] = await waitingFlows(...said);
  assertEquals(flow!.takeFirst(4), undefined);
  assertEquals(flow!.takeFirst(5), new TextEncoder().encode("first"));
  const probe = new ConduitProbe(flow!);
  await probe.received(6);
  assertEquals(probe.text, "second");
  listener.close();
});

Deno.test("datagrams that nobody listens to are kept up to a limit", async () => {
  const datagram = new Uint8Array(LISTENER_WAITING_BYTES_MAX / 4 + 1);
  const said = [Array(5).fill(datagram), ["elsewhere"]];
  const [listener, flows] = await waitingFlows(...said);
  const probe = new ConduitProbe(flows[0]!);
  await probe.received(3 * datagram.length);
  assertEquals(probe.chunks.length, 3);
  listener.close();
  // What was over before anybody listened is told as well.
  await Promise.resolve();
  assertEquals((await new ConduitProbe(flows[1]!).closed).kind, "reset");
});

/** Resolves when the datagram has left: those sent later come later. */
function sent(
  socket: Socket,
  datagram: string | Uint8Array,
  port: number,
): Promise<void> {
  return new Promise((resolve) =>
    socket.send(datagram, port, "127.0.0.1", () => resolve())
  );
}

Deno.test("a port whose socket fails is opened again, with its flows ended", async () => {
  const timers = new FakeTimers();
  const opened: DatagramEvents[] = [];
  const flows: ConduitProbe[] = [];
  const said: string[] = [];
  const came = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const isOpen = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const listener = await listenDatagrams({
    hostname: "127.0.0.1",
    port: 0,
    timers,
    idleTimeoutMs: IDLE_MS,
    onProblem: (line) => said.push(line),
    async openSocket(at, options) {
      const socket = await openDatagramSocket(at, options);
      const { listen, close } = socket;
      socket.listen = (events) => {
        opened.push(events);
        listen.call(socket, events);
        isOpen[opened.length - 1]!.resolve();
      };
      socket.close = (closed) =>
        close.call(socket, () => {
          closed?.();
          isFree.resolve();
        });
      return socket;
    },
    onFlow(flow) {
      flows.push(new ConduitProbe(flow));
      came[flows.length - 1]!.resolve();
    },
  });
  const isFree = Promise.withResolvers<void>();
  const { address } = listener;
  const caller = createSocket("udp4");
  const say = () =>
    caller.send("x", Number(address.split(":")[1]), "127.0.0.1");
  say();
  await came[0]!.promise;
  opened[0]!.onError(new Error("network is down"));
  await isFree.promise;
  assertEquals((await flows[0]!.closed).kind, "reset");
  timers.advance(REOPEN_MS_MAX);
  await isOpen[1]!.promise;
  assertEquals(listener.address, address);
  say();
  await came[1]!.promise;
  assertEquals(said, [
    `${address} is heard no more: network is down; opening it again`,
  ]);
  caller.close();
  listener.close();
});
