import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { firstBytes } from "./first_bytes.ts";
import type { ByteSocket } from "./byte_socket.ts";

const encode = (text: string) => new TextEncoder().encode(text);

/** A socket whose reads a test answers, one by one. */
function scripted(): {
  socket: ByteSocket;
  answer: (bytes: Uint8Array | null) => void;
} {
  const reads: ((bytes: Uint8Array | null) => void)[] = [];
  const socket: ByteSocket = {
    remoteAddress: "",
    localAddress: "",
    closesInOrder: false,
    alpn: "",
    identity: { kind: "anonymous", commonName: "", fingerprint: "", names: [] },
    read: (into) =>
      new Promise((resolve) =>
        reads.push((bytes) => {
          if (bytes !== null) into.set(bytes);
          resolve(bytes?.length ?? null);
        })
      ),
    write: (bytes) => Promise.resolve(bytes.length),
    closeWrite: () => Promise.resolve(),
    close: () => {},
    reset: () => {},
  };
  return { socket, answer: (bytes) => reads.shift()!(bytes) };
}

async function readText(socket: ByteSocket, size = 64): Promise<string> {
  const into = new Uint8Array(size);
  const count = await socket.read(into);
  return new TextDecoder().decode(into.subarray(0, count ?? 0));
}

Deno.test("firstBytes() gives what a caller says at once", async () => {
  const { socket, answer } = scripted();
  const looking = firstBytes(socket, 5, new FakeTimers());
  answer(encode("GET /"));
  const first = await looking;
  assertEquals(new TextDecoder().decode(first.early), "GET /");
  assertEquals(first.socket, socket);
});

Deno.test("firstBytes() loses nothing that comes late", async () => {
  const timers = new FakeTimers();
  const { socket, answer } = scripted();
  const looking = firstBytes(socket, 5, timers);
  timers.advance(5);
  const first = await looking;
  assertEquals(first.early.length, 0);
  answer(encode("late words"));
  assertEquals(await readText(first.socket, 4), "late");
  assertEquals(await readText(first.socket), " words");
  const next = readText(first.socket);
  answer(encode("more"));
  assertEquals(await next, "more");
});

Deno.test("firstBytes() hands on an end that came in time", async () => {
  const { socket, answer } = scripted();
  const looking = firstBytes(socket, 5, new FakeTimers());
  answer(null);
  const first = await looking;
  assertEquals(await first.socket.read(new Uint8Array(8)), null);
});
