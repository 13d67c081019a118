import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import {
  ConduitProbe,
  settled,
} from "../tests/support/memory/conduit_probe.ts";
import {
  MemoryConduit,
  type MemoryPairOptions,
} from "../tests/support/memory/memory_conduit.ts";
import { Prng } from "../tests/support/memory/prng.ts";
import { TunnelLostError, TunnelResetError } from "./dial_error.ts";
import { addrOf, TunnelConn } from "./tunnel_conn.ts";

function connect(options: MemoryPairOptions = {}) {
  const [ours, theirs] = MemoryConduit.pair(options);
  const conn = new TunnelConn(ours);
  return { conn, ours, far: new ConduitProbe(theirs) };
}

const encode = (text: string) => new TextEncoder().encode(text);

async function readText(conn: TunnelConn, bytes = 100): Promise<string> {
  const into = new Uint8Array(bytes);
  const count = await conn.read(into);
  return new TextDecoder().decode(into.subarray(0, count ?? 0));
}

Deno.test("a read takes what is there, up to its buffer", async () => {
  const { conn, far } = connect();
  await far.send("hello world");
  assertEquals(await readText(conn, 5), "hello");
  assertEquals(await readText(conn), " world");
});

Deno.test("a read waits, and nothing is asked of one without room", async () => {
  const { conn, far } = connect();
  assertEquals(await conn.read(new Uint8Array(0)), 0);
  const reading = readText(conn);
  assertThrows(() => conn.read(new Uint8Array(1)), TypeError, "another read");
  far.send("late");
  assertEquals(await reading, "late");
});

Deno.test("one read takes bytes from many chunks", async () => {
  const { conn, far, ours } = connect({ windowBytes: 1 << 20 });
  const bytes = new Prng(1).bytes(300_000);
  await far.send(bytes);
  const into = new Uint8Array(400_000);
  assertEquals(await conn.read(into), bytes.length);
  assertEquals(into.subarray(0, bytes.length), bytes);
  assertEquals(ours.unconsumedBytes, 0);
});

Deno.test("bytes that are not read stall the other end", async () => {
  const { conn, far } = connect({ windowBytes: 1000 });
  await far.send(new Uint8Array(5000));
  assertEquals(far.queuedBytes, 4000);
  assertEquals(await conn.read(new Uint8Array(600)), 600);
  await settled();
  assertEquals(far.queuedBytes, 3400);
});

Deno.test("a write waits for a stalled reader, and is whole", async () => {
  const { conn, far } = connect({ windowBytes: 1000 });
  far.stopReading();
  let isDone = false;
  const bytes = new Prng(2).bytes(2500);
  const writing = conn.write(bytes).then(() => isDone = true);
  await settled();
  assertEquals([far.receivedBytes, isDone], [1000, false]);
  assertThrows(() => conn.write(bytes), TypeError, "another write");
  far.startReading();
  await writing;
  await far.received(2500);
  assertEquals(far.bytes, bytes);
});

Deno.test("each side ends alone, and both are a clean end", async () => {
  const { conn, far } = connect();
  await conn.write(encode("last words"));
  conn.closeWrite();
  conn.closeWrite();
  assertThrows(() => conn.write(encode("more")), TypeError, "closeWrite()");
  await far.ended;
  far.send("answer");
  far.finish();
  assertEquals(await readText(conn), "answer");
  assertEquals(await conn.read(new Uint8Array(1)), null);
  assertEquals(await conn.read(new Uint8Array(1)), null);
  assertEquals(await conn.closed, { kind: "clean" });
});

Deno.test("a half-close waits for the write before it", async () => {
  const { conn, far } = connect({ windowBytes: 10 });
  far.stopReading();
  const writing = conn.write(encode("more than ten bytes"));
  conn.closeWrite();
  await settled();
  assertEquals(far.hasEnded, false);
  far.startReading();
  await Promise.all([writing, far.ended]);
  assertEquals(far.text, "more than ten bytes");
});

Deno.test("a reset is no end, behind what came before it", async () => {
  const { conn, far } = connect();
  await far.send("half an answ");
  far.reset("connection reset by peer");
  assertEquals(await readText(conn), "half an answ");
  const { message } = await assertRejects(
    () => conn.read(new Uint8Array(1)),
    TunnelResetError,
  );
  assertEquals(message, "connection reset by peer");
  await assertRejects(() => conn.write(encode("x")), TunnelResetError);
});

Deno.test("a loss is neither end nor reset, for whoever waits", async () => {
  const { conn, far, ours } = connect({ windowBytes: 10 });
  far.stopReading();
  const reading = assertRejects(
    () => conn.read(new Uint8Array(1)),
    TunnelLostError,
    "cable cut",
  );
  const writing = assertRejects(
    () => conn.write(new Uint8Array(100)),
    TunnelLostError,
    "cable cut",
  );
  await settled();
  ours.lose("cable cut");
  await Promise.all([reading, writing]);
  assertEquals(await conn.closed, { kind: "lost", reason: "cable cut" });
});

Deno.test("close gives up both directions and whoever waits", async () => {
  const { conn, far } = connect();
  const reading = assertRejects(
    () => conn.read(new Uint8Array(1)),
    TunnelResetError,
    "closed by its user",
  );
  conn.close();
  conn.close();
  await reading;
  assertEquals((await far.closed).kind, "reset");
});

Deno.test("web streams carry both directions and their ends", async () => {
  const { conn, far } = connect({ windowBytes: 1000 });
  const bytes = new Prng(3).bytes(10_000);
  const sending = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream()
    .pipeTo(conn.writable);
  far.send("answer");
  far.finish();
  assertEquals(await new Response(conn.readable).text(), "answer");
  await sending;
  await far.ended;
  assertEquals(far.bytes, bytes);
  assertEquals(await conn.closed, { kind: "clean" });
});

Deno.test("a stream that is cancelled resets the connection", async () => {
  const { conn, far } = connect();
  await conn.readable.cancel();
  assertEquals((await far.closed).kind, "reset");
});

Deno.test("each direction is one stream, however often it is asked for", async () => {
  const { conn, far } = connect();
  assertEquals(conn.readable === conn.readable, true);
  assertEquals(conn.writable === conn.writable, true);
  const reader = conn.readable.getReader();
  assertEquals(conn.readable.locked, true);
  far.send("hello");
  assertEquals((await reader.read()).value, encode("hello"));
});

Deno.test("a connection that goes out of scope is closed", async () => {
  const { conn, far } = connect();
  {
    await using inner = conn;
    await inner.write(encode("half"));
  }
  assertEquals((await conn.closed).kind, "reset");
  await far.closed;
  assertEquals(far.end?.kind, "reset");
});

Deno.test("closing delivers what was written once both ends have ended", async () => {
  const { conn, far } = connect({ windowBytes: 1000 });
  far.stopReading();
  far.finish();
  const writing = conn.write(new Uint8Array(1000));
  await writing;
  conn.closeWrite();
  assertEquals(await conn.read(new Uint8Array(1)), null);
  conn[Symbol.dispose]();
  far.startReading();
  await far.received(1000);
  assertEquals(await conn.closed, { kind: "clean" });
});

Deno.test("a connection says what was dialed, and that it has no address", () => {
  const [ours] = MemoryConduit.pair({});
  const conn = new TunnelConn(ours, addrOf("tcp", "[fd00::7]:443"));
  assertEquals(conn.remoteAddr, {
    transport: "tcp",
    hostname: "fd00::7",
    port: 443,
  });
  assertEquals(conn.localAddr, {
    transport: "tcp",
    hostname: "0.0.0.0",
    port: 0,
  });
});
