import { assertEquals, assertRejects } from "@std/assert";
import {
  type DatagramAddress,
  type DatagramSocket,
  DenoDatagramSocket,
  NodeDatagramSocket,
} from "./datagram_socket.ts";

const LOOPBACK = { hostname: "127.0.0.1", port: 0 };

// deno-lint-ignore no-explicit-any -- there only under --unstable-net
const listenDatagram = (Deno as any).listenDatagram;

const KINDS: Readonly<
  Record<string, (at: DatagramAddress) => Promise<DatagramSocket>>
> = {
  node: (at) => NodeDatagramSocket.open(at),
  ...(listenDatagram === undefined ? {} : {
    deno: (at: DatagramAddress) => DenoDatagramSocket.open(at, listenDatagram),
  }),
};

/** What comes next, and from which port. */
function next(socket: DatagramSocket): Promise<readonly [Uint8Array, number]> {
  return new Promise((resolve, reject) =>
    socket.listen({
      onDatagram: (octets, _hostname, port) => resolve([octets.slice(), port]),
      onError: reject,
    })
  );
}

function closed(socket: DatagramSocket): Promise<void> {
  return new Promise((resolve) => socket.close(resolve));
}

for (const [kind, open] of Object.entries(KINDS)) {
  Deno.test(`${kind}: datagrams of any length go and come whole`, async () => {
    for (const octets of [0, 1, 1_200, 65_507]) {
      const [one, other] = [await open(LOOPBACK), await open(LOOPBACK)];
      const heard = next(other);
      const sent = new Uint8Array(octets).fill(7);
      one.send(sent, other.address);
      sent.fill(0); // It was copied.
      const [received, port] = await heard;
      assertEquals(received, new Uint8Array(octets).fill(7));
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
    one.send(new Uint8Array(3), to); // Nobody hears it, nothing throws.
  });

  Deno.test(`${kind}: a port that is taken is refused`, async () => {
    const one = await open(LOOPBACK);
    await assertRejects(() => open(one.address));
    await closed(one);
  });
}
