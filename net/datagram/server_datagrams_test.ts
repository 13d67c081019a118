/**
 * Sockets for all addresses of this machine: whoever asks one of them is
 * answered from that one.
 */

import { assert, assertEquals } from "@std/assert";
import {
  type DatagramSocket,
  openDatagramSocket,
  senderKey,
  senderOf,
} from "./datagram_socket.ts";

/** A server that sends back what it receives, once for each in `times`. */
async function echo(hostname: string, times = 1) {
  const socket = await openDatagramSocket({ hostname, port: 0 }, {
    isServer: true,
  });
  const senders = new Map<string, ReturnType<typeof senderOf>>();
  socket.listen({
    onDatagram(bytes, host, port, local) {
      const key = senderKey(host, port, local);
      const to = senders.get(key) ?? senderOf(host, port, local);
      senders.set(key, to);
      for (let count = 0; count < times; count++) socket.send(bytes, to);
    },
    onError(error) {
      throw error;
    },
  });
  return { socket, senders };
}

/** Sends one datagram to each of `hosts`. @returns Who answered, in order. */
async function ask(
  from: string,
  hosts: readonly string[],
  port: number,
  answers = hosts.length,
): Promise<string[]> {
  const socket = await openDatagramSocket({ hostname: from, port: 0 });
  const all = Promise.withResolvers<string[]>();
  const received: string[] = [];
  socket.listen({
    onDatagram(_bytes, hostname) {
      received.push(hostname);
      if (received.length === answers) all.resolve(received);
    },
    onError: all.reject,
  });
  for (const hostname of hosts) {
    socket.send(new Uint8Array(40), { hostname, port });
  }
  await all.promise;
  await closed(socket);
  return received.sort();
}

const closed = (socket: DatagramSocket) =>
  new Promise<void>((resolve) => socket.close(resolve));

const WAYS = [
  ["0.0.0.0", "127.0.0.1", ["127.0.0.1", "127.0.0.5", "127.0.0.6"]],
  ["::", "127.0.0.1", ["127.0.0.5", "127.0.0.6"]],
  ["::", "::1", ["::1"]],
] as const;

for (const [at, from, hosts] of WAYS) {
  Deno.test(`on ${at} who asks ${hosts.join(", ")} is answered from there`, async () => {
    const { socket, senders } = await echo(at);
    assert(socket.reportsLocal);
    assertEquals(await ask(from, hosts, socket.address.port), [...hosts]);
    assertEquals(senders.size, hosts.length);
    await closed(socket);
  });
}

Deno.test("answers that the kernel cuts leave from the right address, too", async () => {
  const { socket } = await echo("0.0.0.0", 3);
  const hosts = ["127.0.0.5", "127.0.0.6"];
  const received = await ask("127.0.0.1", hosts, socket.address.port, 6);
  assertEquals(received, [...hosts, ...hosts, ...hosts].sort());
  await closed(socket);
});
