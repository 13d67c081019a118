import { assert, assertEquals, assertRejects } from "@std/assert";
import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { Listener } from "../../tests/support/peers/sockets.ts";
import { nextTurn } from "../../tests/support/watch/event_loop.ts";
import { isRefusal } from "../../proto/transfer/conduit.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { DatagramConduit, UNCONSUMED_BYTES_MAX } from "./datagram_conduit.ts";
import { openDatagramSocket } from "./datagram_socket.ts";

const text = new TextEncoder();

Deno.test("each write is one datagram, an empty one too, and so is each answer", async () => {
  await withEcho(async (port) => {
    const conduit = await open(port);
    const received = new Listener(conduit);
    // One at a time, because UDP may change the order.
    for (const word of ["one", "", "three"]) {
      const seen = received.chunks.length;
      assertEquals(conduit.write(text.encode(word)), word.length);
      await received.until(() => received.chunks.length > seen);
      assertEquals(received.chunks.at(-1), text.encode(word));
    }
    assert(conduit.datagrams);
    conduit.reset("done");
    assertEquals(await received.closed(), { kind: "reset", reason: "done" });
  });
});

Deno.test("a datagram from another address is not delivered", async () => {
  const outsider = createSocket("udp4");
  await withEcho(async (port, echo) => {
    const conduit = await open(port);
    const received = new Listener(conduit);
    const asked = new Promise<RemoteInfo>((resolve) =>
      echo.once("message", (_, sender) => resolve(sender))
    );
    conduit.write(text.encode("first"));
    const own = await asked;
    await received.until(() => received.chunks.length === 1);
    await new Promise<void>((resolve) =>
      outsider.send("forged", own.port, "127.0.0.1", () => resolve())
    );
    conduit.write(text.encode("second"));
    await received.until(() => received.chunks.length === 2);
    assertEquals(received.received, text.encode("firstsecond"));
    conduit.reset("done");
    await received.closed();
  });
  outsider.close();
});

async function deadPort(): Promise<number> {
  const dead = await openDatagramSocket({ hostname: "127.0.0.1", port: 0 });
  const { port } = dead.address;
  await new Promise<void>((resolve) => dead.close(resolve));
  return port;
}

Deno.test("a flow is over once its target refuses datagrams, a session or not", async () => {
  const port = await deadPort();
  for (const isSession of [true, false]) {
    const conduit = await open(port, Infinity, isSession);
    const received = new Listener(conduit);
    conduit.write(text.encode("?"));
    // Nothing more is sent.
    assert(isRefusal(await received.closed()));
    assert(conduit.isOver);
  }
});

Deno.test("whoever sends again before the refusal was reported finds out by that", async () => {
  const conduit = await open(await deadPort(), Infinity, true);
  const received = new Listener(conduit);
  // On loopback the refusal is there as soon as the datagram has left.
  conduit.write(text.encode("?"));
  await Promise.resolve();
  assert(!conduit.isOver);
  conduit.write(text.encode("?"));
  assert(conduit.isOver);
  assert(isRefusal(await received.closed()));
});

Deno.test("a session asks the kernel for less, and takes the longest datagrams", async () => {
  await withEcho(async (port) => {
    const conduit = await open(port, Infinity, true);
    const received = new Listener(conduit);
    for (let count = 1; count <= 3; count++) {
      conduit.write(new Uint8Array(65_507).fill(count));
    }
    await received.until(() => received.chunks.length === 3);
    assertEquals(received.chunks.map(({ length }) => length), [
      65_507,
      65_507,
      65_507,
    ]);
    conduit.reset("done");
    await received.closed();
  });
});

Deno.test("a session to where no way leads is not opened", async () => {
  await assertRejects(
    () =>
      DatagramConduit.open({
        address: "fe80::1", // Which says nothing without a zone.
        port: 9,
        timers: systemTimers,
        idleTimeoutMs: Infinity,
        isSession: true,
      }),
    Error,
    "no route",
  );
});

Deno.test("silence ends the flow, with its reason", async () => {
  await withEcho(async (port) => {
    const received = new Listener(await open(port, 5));
    assertEquals(await received.closed(), {
      kind: "reset",
      reason: "no datagram in either direction for 5 ms",
    });
  });
});

Deno.test("answers still arrive after our end, then it is clean", async () => {
  await withEcho(async (port) => {
    const conduit = await open(port, 100);
    const received = new Listener(conduit);
    conduit.write(text.encode("query"));
    conduit.end();
    assertEquals(await received.closed(), { kind: "clean" });
    assertEquals(received.received, text.encode("query"));
    assert(received.ended);
  });
});

Deno.test("a reader that is behind loses datagrams, not memory", async () => {
  await withEcho(async (port) => {
    const conduit = await open(port);
    const received = new Listener(conduit, { consume: false });
    const datagram = new Uint8Array(32 * 1024);
    while (received.receivedBytes < UNCONSUMED_BYTES_MAX) {
      const seen = received.chunks.length;
      conduit.write(datagram);
      await received.until(() => received.chunks.length > seen);
    }
    conduit.write(datagram);
    while (conduit.droppedDatagrams === 0) {
      await nextTurn();
    }
    assertEquals(received.receivedBytes, UNCONSUMED_BYTES_MAX);
    conduit.reset("done");
    await received.closed();
  });
});

function open(
  port: number,
  idleTimeoutMs = 10_000,
  isSession = false,
): Promise<DatagramConduit> {
  return DatagramConduit.open({
    address: "127.0.0.1",
    port,
    timers: systemTimers,
    idleTimeoutMs,
    isSession,
  });
}

async function withEcho(
  use: (port: number, echo: Socket) => Promise<void>,
): Promise<void> {
  const echo = createSocket("udp4");
  echo.on(
    "message",
    (bytes, sender) => echo.send(bytes, sender.port, sender.address),
  );
  await new Promise<void>((resolve) => echo.bind(0, "127.0.0.1", resolve));
  await use(echo.address().port, echo);
  await new Promise<void>((resolve) => echo.close(() => resolve()));
}
