import { assert, assertEquals, assertRejects } from "@std/assert";
import { setImmediate } from "node:timers";
import {
  type DatagramAddress,
  type DatagramSocket,
  openDatagramSocket,
} from "./datagram_socket.ts";
import { DenoDatagramSocket } from "./deno_datagram_socket.ts";

const LOOPBACK = { hostname: "127.0.0.1", port: 0 };

const KINDS: Readonly<
  Record<string, (at: DatagramAddress) => Promise<DatagramSocket>>
> = {
  // deno-lint-ignore require-await -- what it throws is to be a rejection
  deno: async (at) => DenoDatagramSocket.open(at),
  libc: openDatagramSocket,
};

/** What comes next, and from which port. */
function next(socket: DatagramSocket): Promise<readonly [Uint8Array, number]> {
  return new Promise((resolve, reject) =>
    socket.listen({
      onDatagram: (bytes, _hostname, port) => resolve([bytes.slice(), port]),
      onError: reject,
    })
  );
}

/** The next `count` datagrams. */
function collect(
  socket: DatagramSocket,
  count: number,
): Promise<{ bytes: Uint8Array; hostname: string; port: number }[]> {
  const heard: { bytes: Uint8Array; hostname: string; port: number }[] = [];
  return new Promise((resolve, reject) =>
    socket.listen({
      onDatagram(bytes, hostname, port) {
        heard.push({ bytes: bytes.slice(), hostname, port });
        if (heard.length === count) resolve(heard);
      },
      onError: reject,
    })
  );
}

function closed(socket: DatagramSocket): Promise<void> {
  return new Promise((resolve) => socket.close(resolve));
}

for (const [kind, open] of Object.entries(KINDS)) {
  Deno.test(`${kind}: datagrams of any length go and come whole`, async () => {
    for (const bytes of [0, 1, 1_200, 65_507]) {
      const [one, other] = [await open(LOOPBACK), await open(LOOPBACK)];
      const heard = next(other);
      const sent = new Uint8Array(bytes).fill(7);
      one.send(sent, other.address);
      sent.fill(0); // It was copied.
      const [received, port] = await heard;
      assertEquals(received, new Uint8Array(bytes).fill(7));
      assertEquals(port, one.address.port);
      await Promise.all([closed(one), closed(other)]);
    }
  });

  Deno.test(`${kind}: a datagram that cannot be sent is a lost one`, async () => {
    const [one, other] = [await open(LOOPBACK), await open(LOOPBACK)];
    const to = other.address;
    const heard = next(other);
    one.send(new Uint8Array(70_000), to);
    one.send(new Uint8Array(3), to);
    assertEquals((await heard)[0].length, 3);
    await Promise.all([closed(one), closed(other)]);
    one.send(new Uint8Array(3), to); // Nobody receives it, nothing throws.
  });

  Deno.test(`${kind}: a burst comes whole`, async () => {
    const [one, other] = [await open(LOOPBACK), await open(LOOPBACK)];
    const lengths = Array.from(
      { length: 100 },
      (_, index) => index % 7 * 200 + 1,
    );
    const heard = collect(other, lengths.length);
    for (const [index, length] of lengths.entries()) {
      one.send(new Uint8Array(length).fill(index), other.address);
    }
    const received = await heard;
    // UDP may change the order.
    received.sort((a, b) => a.bytes[0]! - b.bytes[0]!);
    assertEquals(received.map(({ bytes }) => bytes.length), lengths);
    for (const [index, { bytes, port }] of received.entries()) {
      assert(bytes.every((byte) => byte === index));
      assertEquals(port, one.address.port);
    }
    await Promise.all([closed(one), closed(other)]);
  });

  Deno.test(`${kind}: a sender has one name, which can be answered`, async () => {
    for (
      const [from, to, name] of [
        ["127.0.0.1", "0.0.0.0", "127.0.0.1"],
        ["::1", "::", "::1"],
        ["127.0.0.1", "::", "::ffff:127.0.0.1"],
      ] as const
    ) {
      const [one, other] = [
        await open({ hostname: from, port: 0 }),
        await open({ hostname: to, port: 0 }),
      ];
      const answers = collect(one, 6);
      const names = new Set<string>();
      other.listen({
        onDatagram(bytes, hostname, port) {
          names.add(hostname);
          other.send(bytes, { hostname, port });
        },
        onError() {},
      });
      const { port } = other.address;
      for (let count = 0; count < 6; count++) {
        one.send(Uint8Array.of(count), { hostname: from, port });
      }
      await answers;
      assertEquals([...names], [name]);
      await Promise.all([closed(one), closed(other)]);
    }
  });

  Deno.test(`${kind}: nothing is received after closing inside a burst`, async () => {
    const [one, other] = [await open(LOOPBACK), await open(LOOPBACK)];
    const over = Promise.withResolvers<void>();
    let heard = 0;
    for (let count = 0; count < 10; count++) {
      one.send(Uint8Array.of(count), other.address);
    }
    other.listen({
      onDatagram() {
        if (++heard === 2) other.close(over.resolve);
      },
      onError: over.reject,
    });
    await over.promise;
    await closed(one);
    assertEquals(heard, 2);
  });

  Deno.test(`${kind}: what was sent before closing is on its way`, async () => {
    const [one, other] = [await open(LOOPBACK), await open(LOOPBACK)];
    const heard = next(other);
    one.send(Uint8Array.of(1), other.address);
    await closed(one);
    assertEquals((await heard)[0], Uint8Array.of(1));
    await closed(other);
  });

  Deno.test(`${kind}: a closed socket's port is free once it says so`, async () => {
    const first = await open(LOOPBACK);
    const at = first.address;
    void next(first).catch(() => {});
    await closed(first);
    for (let count = 0; count < 20; count++) {
      const again = await open(at);
      void next(again).catch(() => {});
      await closed(again);
    }
  });

  Deno.test(`${kind}: a port that is taken is refused`, async () => {
    const one = await open(LOOPBACK);
    await assertRejects(() => open(one.address));
    await closed(one);
  });
}

Deno.test("a flood of datagrams lets others have their turn", async () => {
  const [one, other] = [
    await openDatagramSocket(LOOPBACK),
    await openDatagramSocket(LOOPBACK),
  ];
  const count = 256;
  for (let index = 0; index < count; index++) {
    one.send(Uint8Array.of(1), other.address);
  }
  await closed(one); // All are in the kernel, even one that holds little.
  const over = Promise.withResolvers<void>();
  let heard = 0;
  const receivedByThen: number[] = [];
  const look = () => {
    receivedByThen.push(heard);
    if (heard < count) setImmediate(look);
    else over.resolve();
  };
  other.listen({
    onDatagram() {
      if (heard++ === 0) setImmediate(look);
    },
    onError: over.reject,
  });
  await over.promise;
  assert(receivedByThen[0]! < count, `${receivedByThen}`);
  await closed(other);
});
