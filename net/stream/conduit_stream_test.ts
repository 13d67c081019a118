import { assertEquals, assertRejects } from "@std/assert";
import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import { ConduitStream } from "./conduit_stream.ts";
import { Socket } from "./socket.ts";
import { endOf } from "./stream.ts";

function pair(windowBytes = 8): [Socket, ConduitProbe] {
  const [near, far] = MemoryConduit.pair({ windowBytes });
  return [new Socket(new ConduitStream(near, "far")), new ConduitProbe(far)];
}

const bytes = (text: string) => new TextEncoder().encode(text);

async function read(socket: Socket, bytesMax: number) {
  const into = new Uint8Array(bytesMax);
  const count = await socket.read(into);
  return count === null
    ? null
    : new TextDecoder().decode(into.subarray(0, count));
}

Deno.test("ConduitStream gives what arrives, in pieces as wanted, then the end", async () => {
  const [socket, far] = pair();
  const waiting = read(socket, 4);
  far.send("abcdef");
  far.finish();
  assertEquals(await waiting, "abcd");
  assertEquals(await read(socket, 4), "ef");
  assertEquals(await read(socket, 4), null);
  assertEquals(await read(socket, 4), null);
});

Deno.test("ConduitStream lets the far end go on only as fast as it is read", async () => {
  const [socket, far] = pair(8);
  far.send("0123456789abcdef");
  assertEquals(far.queuedBytes, 8);
  await settled();
  assertEquals(far.queuedBytes, 8);
  assertEquals(await read(socket, 3), "012");
  await settled();
  assertEquals(far.queuedBytes, 5);
});

Deno.test("ConduitStream waits with a write until there is room", async () => {
  const [socket, far] = pair(8);
  far.stopReading();
  assertEquals(await socket.write(bytes("0123456789")), 8);
  const late = socket.write(bytes("89"));
  far.startReading();
  assertEquals(await late, 2);
  await far.received(10);
  assertEquals(far.text, "0123456789");
});

Deno.test("ConduitStream that has ended both ways is no reset, though it is closed before all has left", async () => {
  const [near, conduit] = MemoryConduit.pair();
  const [socket, far] = [
    new Socket(new ConduitStream(near, "far")),
    new ConduitProbe(conduit),
  ];
  near.stall();
  await socket.write(bytes("bye"));
  await socket.closeWrite();
  far.finish();
  assertEquals(await read(socket, 4), null);
  socket.close();
  near.resume();
  assertEquals(await far.closed, { kind: "clean" });
  assertEquals(far.text, "bye");
});

Deno.test("ConduitStream that is closed early is given up, and says so to who waits", async () => {
  const [socket, far] = pair();
  far.stopReading();
  await socket.write(bytes("01234567"));
  const waits = [read(socket, 4), socket.write(bytes("x"))];
  const refused = waits.map((each) => assertRejects(() => each));
  socket.close();
  await Promise.all(refused);
  assertEquals((await far.closed).kind, "reset");
});

for (const kind of ["reset", "lost"] as const) {
  Deno.test(`ConduitStream reports that its conduit was ${kind}`, async () => {
    const [near, far] = MemoryConduit.pair();
    const socket = new Socket(new ConduitStream(near, "far"));
    const probe = new ConduitProbe(far);
    const reading = read(socket, 4);
    probe.reset("because", kind);
    const error = await assertRejects(() => reading);
    assertEquals(endOf(error).kind, kind);
    const again = await assertRejects(() => socket.write(bytes("x")));
    assertEquals(endOf(again).kind, kind);
  });
}
