import { assertEquals, assertRejects } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { ScriptedStream } from "../../tests/support/memory/scripted_stream.ts";
import { firstBytes } from "./first_bytes.ts";
import { Socket } from "./socket.ts";

const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

/** A caller, and the look for what it says first. */
function look() {
  const timers = new FakeTimers();
  const stream = new ScriptedStream();
  const socket = new Socket(stream);
  return { timers, stream, socket, looking: firstBytes(socket, 5, timers) };
}

async function readText(socket: Socket, size = 64): Promise<string> {
  const into = new Uint8Array(size);
  const count = await socket.read(into);
  return decode(into.subarray(0, count ?? 0));
}

Deno.test("firstBytes() gives what a caller says at once", async () => {
  const { timers, stream, socket, looking } = look();
  stream.deliver(encode("GET /"));
  assertEquals(decode(await looking), "GET /");
  assertEquals(decode(socket.bytes), "GET /", "it stays");
  assertEquals(timers.pendingCount, 0);
});

Deno.test("firstBytes() loses nothing that comes late", async () => {
  const { timers, stream, socket, looking } = look();
  timers.advance(5);
  assertEquals((await looking).length, 0);
  const first = new Socket(socket.handOver());
  stream.deliver(encode("late words"));
  assertEquals(await readText(first, 4), "late");
  assertEquals(await readText(first), " words");
});

Deno.test("firstBytes() hands on an end that came in time", async () => {
  const { stream, socket, looking } = look();
  stream.deliver(null);
  assertEquals((await looking).length, 0);
  const first = new Socket(socket.handOver());
  assertEquals(await first.read(new Uint8Array(8)), null);
});

Deno.test("firstBytes() throws what came in time, and hands on what came late", async () => {
  const soon = look();
  soon.stream.deliver(new Error("gone"));
  await assertRejects(() => soon.looking, Error, "gone");
  const late = look();
  late.timers.advance(5);
  await late.looking;
  late.stream.deliver(new Error("gone"));
  const first = new Socket(late.socket.handOver());
  await assertRejects(() => first.read(new Uint8Array(8)), Error, "gone");
});
