import { assert, assertEquals } from "@std/assert";
import {
  DatagramSender,
  OUTBOX_DATAGRAM_BYTES_MAX,
  OUTBOX_WAITING_MAX,
  SEGMENT_BYTES_MAX,
} from "./datagram_outbox.ts";
import type { DatagramAddress } from "../libc/socket_address.ts";

const ONE: DatagramAddress = { hostname: "127.0.0.1", port: 1 };
const TWO: DatagramAddress = { hostname: "127.0.0.1", port: 2 };

/** What the kernel was given: port, datagrams in one header, length of each. */
type Given = readonly [port: number, count: number, segment: number];

/** A kernel that takes as much as it is told to. */
function kernel(takes: (given: readonly Given[]) => number) {
  const calls: Given[][] = [];
  const unsent: [length: number, port: number][] = [];
  const sendmmsg = (
    _descriptor: number,
    headers: unknown,
    count: number,
  ): number => {
    const bytes = headers as Uint8Array<ArrayBuffer>;
    const given = Array.from({ length: count }, (_, index) => {
      return readHeader(new DataView(bytes.buffer, index * 64));
    });
    calls.push(given);
    return takes(given);
  };
  const sender = new DatagramSender(
    { number: 3, library: { sendmmsg } },
    (bytes, { port }) => unsent.push([bytes.length, port]),
  );
  const send = (length: number, to: DatagramAddress) =>
    sender.send(new Uint8Array(length), to);
  return { calls, unsent, send, flush: () => sender.flush() };
}

const all = (given: readonly Given[]) => given.length;

/** Follows the pointers of a `struct mmsghdr`. */
function readHeader(header: DataView): Given {
  const follow = (at: number) => {
    const pointer = Deno.UnsafePointer.create(header.getBigUint64(at, true))!;
    return new Deno.UnsafePointerView(pointer);
  };
  const name = follow(0);
  const port = (name.getUint8(2) << 8) | name.getUint8(3);
  const pieces = follow(16);
  const count = Number(header.getBigUint64(24, true));
  const segment = Number(pieces.getBigUint64(8));
  if (header.getBigUint64(40, true) === 0n) return [port, count, segment];
  assertEquals(follow(32).getUint16(16), segment);
  return [port, count, segment];
}

Deno.test("datagrams of one length to one address leave as one, per address in order", async () => {
  const { calls, send } = kernel(all);
  for (const to of [ONE, TWO, ONE, TWO]) send(100, to);
  assertEquals(calls, []); // Not before the turn is over.
  await Promise.resolve();
  assertEquals(calls, [[[1, 2, 100], [2, 2, 100]]]);
});

Deno.test("a longer datagram begins a new cut, a shorter one ends it", () => {
  const { calls, send, flush } = kernel(all);
  for (const length of [50, 50, 20, 20, 60, 0, 0]) send(length, ONE);
  flush();
  assertEquals(calls, [[
    [1, 3, 50], // 50, 50, 20
    [1, 1, 20],
    [1, 1, 60],
    [1, 1, 0],
    [1, 1, 0],
  ]]);
});

Deno.test("what fits no frame of Ethernet is not left to the kernel to cut", () => {
  const { calls, send, flush } = kernel(all);
  for (let count = 0; count < 2; count++) send(SEGMENT_BYTES_MAX + 1, ONE);
  flush();
  assertEquals(calls.flat().map(([, count]) => count), [1, 1]);
});

Deno.test("together they are no longer than a datagram can be", () => {
  const { calls, send, flush } = kernel(all);
  for (let count = 0; count < OUTBOX_WAITING_MAX; count++) send(1_400, ONE);
  flush();
  assertEquals(calls.flat().reduce((sum, [, count]) => sum + count, 0), 64);
  for (const [, count, length] of calls.flat()) {
    assert(count * length <= OUTBOX_DATAGRAM_BYTES_MAX);
  }
});

Deno.test("a kernel that does not cut is given datagrams, from there on", () => {
  const { calls, send, flush, unsent } = kernel((given) => {
    const refused = given.findIndex(([, count]) => count > 1);
    return refused === 0 ? -1 : refused < 0 ? given.length : refused;
  });
  for (const length of [40, 50, 50]) send(length, ONE);
  flush();
  assertEquals(calls, [
    [[1, 1, 40], [1, 2, 50]], // Of which it takes the first,
    [[1, 1, 50], [1, 1, 50]], // and then the rest.
  ]);
  send(50, ONE);
  send(50, ONE);
  flush();
  assertEquals(calls.at(-1), [[1, 1, 50], [1, 1, 50]]);
  assertEquals(unsent, []);
});

Deno.test("a datagram that is refused is given back, and the next one tried", () => {
  const { send, flush, unsent } = kernel((given) => {
    const refused = given.findIndex(([port]) => port === 2);
    return refused === 0 ? -1 : refused < 0 ? given.length : refused;
  });
  for (const [length, to] of [[1, ONE], [2, TWO], [3, ONE]] as const) {
    send(length, to);
  }
  flush();
  assertEquals(unsent, [[2, 2]]);
});

Deno.test("what cannot be a datagram, or has no address, is given back at once", () => {
  const { calls, send, flush, unsent } = kernel(all);
  send(OUTBOX_DATAGRAM_BYTES_MAX + 1, ONE);
  send(1, { hostname: "localhost", port: 3 });
  assertEquals(unsent, [[OUTBOX_DATAGRAM_BYTES_MAX + 1, 1], [1, 3]]);
  flush();
  assertEquals(calls, []);
});

Deno.test("more than may wait leaves before the turn is over", () => {
  const { calls, send, flush } = kernel(all);
  for (let count = 0; count <= OUTBOX_WAITING_MAX; count++) send(1_000, ONE);
  assertEquals(calls, [[[1, OUTBOX_WAITING_MAX, 1_000]]]);
  flush();
  assertEquals(calls.length, 2);
  send(60_000, ONE);
  send(60_000, ONE);
  send(60_000, ONE); // No room for its bytes.
  assertEquals(calls.at(-1), [[1, 1, 60_000], [1, 1, 60_000]]);
  flush();
});
