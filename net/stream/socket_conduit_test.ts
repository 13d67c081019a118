import { assert, assertEquals, assertThrows } from "@std/assert";
import { Prng } from "../../tests/support/memory/prng.ts";
import { concat, Listener } from "../../tests/support/peers/sockets.ts";
import type { ByteSocket } from "./byte_socket.ts";
import type { ConduitEnd } from "../../proto/transfer/conduit.ts";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { DROPPED_BYTES_PER_TURN, SocketConduit } from "./socket_conduit.ts";
import { PENDING_BYTES_SOFT_LIMIT } from "../buffers/write_batch.ts";

const text = new TextEncoder();

Deno.test("a stalled reader stalls the sender", async () => {
  const socket = new ScriptedSocket();
  const listener = new Listener(new SocketConduit(socket), { consume: false });
  socket.deliver(new Uint8Array(100));
  await listener.until(() => listener.receivedBytes === 100);
  listener.conduit.consumed(99);
  assertEquals(socket.reads, 1, "one byte is still held");
  listener.conduit.consumed(1);
  assertEquals(socket.reads, 2);
  socket.deliver(null);
  await listener.until(() => listener.ended);
  listener.conduit.reset("done");
  await listener.closed();
});

Deno.test("writes of one turn leave together", async () => {
  const socket = new ScriptedSocket();
  const listener = new Listener(new SocketConduit(socket));
  for (const word of ["a", "bc", "def"]) {
    listener.conduit.write(text.encode(word));
  }
  assertEquals(socket.written.length, 0);
  await Promise.resolve();
  assertEquals(socket.written.map(String), [String(text.encode("abcdef"))]);
  listener.conduit.reset("done");
  socket.refuse(new Deno.errors.Interrupted());
  await listener.closed();
});

Deno.test("pieces of a frame that come close behind each other leave together", async () => {
  const socket = new ScriptedSocket();
  const listener = new Listener(new SocketConduit(socket));
  const record = new Uint8Array(16 * 1024);
  for (let piece = 0; piece < 4; piece++) {
    listener.conduit.write(record);
    // What the platform takes for a read of what is here already.
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
  }
  assertEquals(sizes(socket.written), [4 * record.length]);
  listener.conduit.reset("done");
  socket.refuse(new Deno.errors.Interrupted());
  await listener.closed();
});

Deno.test("a piece waits for nothing that has yet to come, and a large chunk not at all", async () => {
  const socket = new ScriptedSocket();
  const listener = new Listener(new SocketConduit(socket));
  const record = new Uint8Array(16 * 1024);
  listener.conduit.write(record);
  for (let turn = 0; turn < 12; turn++) await Promise.resolve();
  assertEquals(sizes(socket.written), [record.length]);
  listener.conduit.write(new Uint8Array(64 * 1024));
  await Promise.resolve();
  assertEquals(sizes(socket.written), [record.length, 64 * 1024]);
  listener.conduit.reset("done");
  socket.refuse(new Deno.errors.Interrupted());
  await listener.closed();
});

Deno.test("a small piece takes the bulk in front of it along at once", async () => {
  const socket = new ScriptedSocket();
  const listener = new Listener(new SocketConduit(socket));
  listener.conduit.write(new Uint8Array(16 * 1024));
  await Promise.resolve();
  listener.conduit.write(text.encode("the end"));
  await Promise.resolve();
  assertEquals(sizes(socket.written), [16 * 1024 + 7]);
  listener.conduit.reset("done");
  socket.refuse(new Deno.errors.Interrupted());
  await listener.closed();
});

function sizes(written: readonly Uint8Array[]): number[] {
  return written.map((bytes) => bytes.length);
}

Deno.test("partial writes are carried on, one at a time", async () => {
  const socket = new ScriptedSocket();
  socket.takes = 7;
  const conduit = new SocketConduit(socket);
  const listener = new Listener(conduit);
  const bytes = new Prng(3).bytes(PENDING_BYTES_SOFT_LIMIT);
  await listener.send(bytes);
  conduit.end();
  socket.deliver(null);
  assertEquals(await listener.closed(), { kind: "clean" });
  assert(equal(concat(socket.written), bytes));
  assertEquals(socket.overlaps, 0);
});

Deno.test("what came before a failed write is still delivered", async () => {
  const socket = new ScriptedSocket();
  socket.writeError = new Deno.errors.BrokenPipe("Broken pipe");
  const conduit = new SocketConduit(socket);
  const listener = new Listener(conduit);
  conduit.write(text.encode("upload"));
  await soon(() => false);
  assertEquals(listener.end, undefined);
  assertEquals(conduit.write(new Uint8Array(10)), 10, "dropped");
  socket.deliver(text.encode("413 too large"));
  await listener.until(() => listener.receivedBytes > 0);
  socket.deliver(null);
  const end = await listener.closed();
  assertEquals(end.kind, "reset");
  assertEquals(listener.ended, false);
  assertEquals(listener.received, text.encode("413 too large"));
});

Deno.test("bytes without end for a peer that is gone leave the event loop alone", async () => {
  const socket = new ScriptedSocket();
  socket.writeError = new Deno.errors.BrokenPipe("Broken pipe");
  const conduit = new SocketConduit(socket);
  const chunk = new Uint8Array(64 * 1024);
  const atOnceMax = 4 * DROPPED_BYTES_PER_TURN;
  let [dropped, atOnce] = [0, 0];
  const offer = () => {
    for (let taken = chunk.length; taken === chunk.length;) {
      taken = conduit.write(chunk);
      dropped += taken;
      atOnce += taken;
      if (atOnce > atOnceMax) return; // A failure, and not a test for ever.
    }
  };
  const closed = Promise.withResolvers<ConduitEnd>();
  conduit.attach({
    onData() {},
    onEnd() {},
    onWritable: offer,
    onClose: closed.resolve,
  });
  offer();
  for (let turn = 0; turn < 10; turn++) {
    await settled();
    assert(atOnce <= atOnceMax, `${atOnce} bytes in one turn`);
    atOnce = 0;
  }
  assert(dropped > 4 * DROPPED_BYTES_PER_TURN, "it stopped taking them");
  socket.refuse(new Deno.errors.ConnectionReset());
  assertEquals((await closed.promise).kind, "reset");
  assertEquals(conduit.write(chunk), 0, "it is over");
});

Deno.test("an error that is no reset is a loss", async () => {
  const socket = new ScriptedSocket();
  const listener = new Listener(new SocketConduit(socket));
  socket.refuse(
    Object.assign(new Error("os error 110"), { code: "ETIMEDOUT" }),
  );
  assertEquals(await listener.closed(), {
    kind: "lost",
    reason: "connection timed out",
  });
});

Deno.test("the end is reported only when the kernel has let go of the buffers", async () => {
  const socket = new ScriptedSocket();
  const listener = new Listener(new SocketConduit(socket));
  listener.conduit.reset("enough");
  assert(!await soon(() => listener.end !== undefined));
  assertEquals(socket.closes, ["reset", "close"]);
  socket.refuse(new Deno.errors.Interrupted());
  assertEquals((await listener.closed()).kind, "reset");
});

Deno.test("misuse is refused", () => {
  const socket = new ScriptedSocket();
  const conduit = new SocketConduit(socket);
  const listener = new Listener(conduit);
  assertThrows(() => conduit.consumed(1), RangeError);
  assertThrows(() => conduit.attach(listener), TypeError);
  conduit.end();
  assertThrows(() => conduit.write(new Uint8Array(1)), TypeError);
});

function equal(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length &&
    left.every((byte, index) => byte === right[index]);
}

/** Whether `condition` comes true within some turns of the event loop. */
async function soon(condition: () => boolean): Promise<boolean> {
  for (let turn = 0; turn < 20; turn++) {
    if (condition()) return true;
    await new Promise((resolve) => setTimeout(resolve));
  }
  return condition();
}

/** A socket that does what the test says. */
class ScriptedSocket implements ByteSocket {
  readonly closesInOrder = false;
  readonly remoteAddress = "";
  readonly localAddress = "";
  readonly alpn = "";
  readonly identity = {
    kind: "anonymous",
    commonName: "",
    fingerprint: "",
    names: [],
  } as const;
  reads = 0;
  takes = Infinity;
  writeError: Error | undefined;
  overlaps = 0;
  readonly written: Uint8Array[] = [];
  readonly closes: string[] = [];
  #isWriting = false;
  #into: Uint8Array | undefined;
  #reading: PromiseWithResolvers<number | null> | undefined;

  deliver(bytes: Uint8Array | null): void {
    if (bytes !== null) this.#into!.set(bytes);
    this.#reading!.resolve(bytes === null ? null : bytes.length);
  }

  refuse(error: Error): void {
    this.#reading!.reject(error);
  }

  read(into: Uint8Array): Promise<number | null> {
    this.reads++;
    this.#into = into;
    this.#reading = Promise.withResolvers();
    return this.#reading.promise;
  }

  async write(bytes: Uint8Array): Promise<number> {
    if (this.writeError !== undefined) throw this.writeError;
    if (this.#isWriting) this.overlaps++;
    this.#isWriting = true;
    const count = Math.min(bytes.length, this.takes);
    this.written.push(bytes.slice(0, count));
    await Promise.resolve();
    this.#isWriting = false;
    return count;
  }

  closeWrite(): Promise<void> {
    return Promise.resolve();
  }

  close(): void {
    this.closes.push("close");
  }

  reset(): void {
    this.closes.push("reset");
  }
}
