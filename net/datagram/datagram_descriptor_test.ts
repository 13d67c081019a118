import { assert, assertEquals } from "@std/assert";
import {
  KERNEL_BUFFER_BYTES,
  openWithDescriptor,
} from "./datagram_descriptor.ts";
import { platformListen } from "./deno_datagram_socket.ts";

const listen = platformListen()!;
const LOOPBACK = { transport: "udp", hostname: "127.0.0.1" } as const;

Deno.test("the descriptor of a UDP socket is found, not that of TCP on its port", async () => {
  const { tcp, socket, descriptor } = openBeside();
  const { port } = socket.addr;
  const received: number[] = [];
  await socket.send(Uint8Array.of(7), { ...LOOPBACK, port });
  const count = descriptor!.read((bytes) => received.push(bytes[0]!) > 0);
  assertEquals([count, ...received], [1, 7]);
  assertEquals(descriptor!.read(() => true), 0); // There is no more.
  socket.close();
  tcp.close();
});

/** A listener, and a UDP socket on the same port that has to be looked for. */
function openBeside(): ReturnType<typeof open> & { tcp: Deno.Listener } {
  for (;;) {
    const tcp = Deno.listen({ hostname: LOOPBACK.hostname, port: 0 });
    try {
      return { tcp, ...open(tcp.addr.port) };
    } catch (error) {
      tcp.close();
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
}

function open(port: number) {
  return openWithDescriptor(() => {
    // Takes the descriptor that was free, as another thread might.
    const faster = listen({ ...LOOPBACK, port: 0 });
    try {
      return listen({ ...LOOPBACK, port });
    } finally {
      faster.close();
    }
  });
}

Deno.test("the kernel holds more than it would by itself", () => {
  const { socket, descriptor } = openWithDescriptor(() =>
    listen({ ...LOOPBACK, port: 0 })
  );
  // Twice what was asked for with CAP_NET_ADMIN; else twice `rmem_max`.
  const got = descriptor!.receiveBufferBytes;
  assert(got > 212_992, `${got} bytes`);
  assert(got <= 2 * KERNEL_BUFFER_BYTES);
  socket.close();
});
