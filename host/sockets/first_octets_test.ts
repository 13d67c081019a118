import { assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/fake_timers.ts";
import { firstOctets } from "./first_octets.ts";
import type { OctetSocket } from "./octet_socket.ts";

const encode = (text: string) => new TextEncoder().encode(text);

/** A socket whose reads a test answers, one by one. */
function scripted(): {
  socket: OctetSocket;
  answer: (octets: Uint8Array | null) => void;
} {
  const reads: ((octets: Uint8Array | null) => void)[] = [];
  const socket: OctetSocket = {
    remoteAddress: "",
    localAddress: "",
    closesInOrder: false,
    alpn: "",
    identity: { kind: "anonymous", commonName: "", fingerprint: "", names: [] },
    read: (into) =>
      new Promise((resolve) =>
        reads.push((octets) => {
          if (octets !== null) into.set(octets);
          resolve(octets?.length ?? null);
        })
      ),
    write: (octets) => Promise.resolve(octets.length),
    closeWrite: () => Promise.resolve(),
    close: () => {},
    reset: () => {},
  };
  return { socket, answer: (octets) => reads.shift()!(octets) };
}

async function readText(socket: OctetSocket, size = 64): Promise<string> {
  const into = new Uint8Array(size);
  const count = await socket.read(into);
  return new TextDecoder().decode(into.subarray(0, count ?? 0));
}

Deno.test("firstOctets() gives what a caller says at once", async () => {
  const { socket, answer } = scripted();
  const looking = firstOctets(socket, 5, new FakeTimers());
  answer(encode("GET /"));
  const first = await looking;
  assertEquals(new TextDecoder().decode(first.early), "GET /");
  assertEquals(first.socket, socket);
});

Deno.test("firstOctets() loses nothing that comes late", async () => {
  const timers = new FakeTimers();
  const { socket, answer } = scripted();
  const looking = firstOctets(socket, 5, timers);
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

Deno.test("firstOctets() hands on an end that came in time", async () => {
  const { socket, answer } = scripted();
  const looking = firstOctets(socket, 5, new FakeTimers());
  answer(null);
  const first = await looking;
  assertEquals(await first.socket.read(new Uint8Array(8)), null);
});
