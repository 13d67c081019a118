import { assert, assertEquals } from "@std/assert";
import { DatagramPeer } from "../../tests/support/peers/datagrams.ts";
import { KERNEL_BUFFER_BYTES } from "./datagram_descriptor.ts";
import { openLibc } from "../libc/libc.ts";
import { socketOption, SOL_SOCKET } from "../libc/socket_option.ts";
import { PolledDatagramSocket } from "./polled_datagram_socket.ts";

const library = openLibc()!;
const SO_RCVBUF = 8;

/** What one socket receives. */
class Received {
  readonly datagrams: Uint8Array[] = [];
  readonly failed = Promise.withResolvers<Error>();
  #waiting: (() => void) | undefined;

  constructor(readonly socket: PolledDatagramSocket) {
    socket.listen({
      onDatagram: (bytes) => {
        this.datagrams.push(bytes.slice());
        this.#waiting?.();
      },
      onError: this.failed.resolve,
    });
  }

  async until(count: number): Promise<void> {
    while (this.datagrams.length < count) {
      await new Promise<void>((resolve) => this.#waiting = resolve);
    }
  }

  close(): Promise<void> {
    return new Promise((resolve) => this.socket.close(resolve));
  }
}

function open(port: number): Received {
  const peer = { hostname: "127.0.0.1", port };
  return new Received(PolledDatagramSocket.open(library, peer));
}

const to = (port: number) => ({ hostname: "127.0.0.1", port });

Deno.test("each of many is woken for what is its own", async () => {
  await using echo = await DatagramPeer.echo();
  const all = Array.from({ length: 40 }, () => open(echo.port));
  for (let round = 1; round <= 3; round++) {
    for (const [index, { socket }] of all.entries()) {
      socket.send(Uint8Array.of(index), to(echo.port));
    }
    await Promise.all(all.map((each) => each.until(round)));
  }
  for (const [index, { datagrams }] of all.entries()) {
    assertEquals(datagrams.map(([byte]) => byte), [index, index, index]);
  }
  await Promise.all(all.map((each) => each.close()));
});

Deno.test("whoever comes right after the last one went is waited for, too", async () => {
  await using echo = await DatagramPeer.echo();
  for (let count = 0; count < 20; count++) {
    const received = open(echo.port);
    received.socket.send(Uint8Array.of(count), to(echo.port));
    await received.until(1);
    received.socket.close();
  }
  const last = open(echo.port);
  await last.close();
});

Deno.test("nothing is received, and nothing thrown, after closing", async () => {
  await using echo = await DatagramPeer.echo();
  const received = open(echo.port);
  received.socket.send(Uint8Array.of(1), to(echo.port));
  await received.until(1);
  received.socket.send(Uint8Array.of(2), to(echo.port));
  await received.close();
  received.socket.send(Uint8Array.of(3), to(echo.port));
  await received.close();
  assertEquals(received.datagrams.length, 1);
});

Deno.test("the kernel holds more than it would by itself", async () => {
  const socket = PolledDatagramSocket.bind(library, to(0));
  const got = socketOption(library, socket.descriptor, SOL_SOCKET, SO_RCVBUF)!;
  // Twice what was asked for with CAP_NET_ADMIN; else twice `rmem_max`.
  assert(got > 212_992 && got <= 2 * KERNEL_BUFFER_BYTES, `${got} bytes`);
  await new Promise<void>((resolve) => socket.close(resolve));
});
