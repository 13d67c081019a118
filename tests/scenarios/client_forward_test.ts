/**
 * Forwarded ports through whole tunnels: programs that know nothing of a tunnel
 * at both ends.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { type Forward, forward } from "../../client/forward.ts";
import type { FrontendProtocol } from "../../client/tunnel_route.ts";
import { openDialer, type TunnelDialer } from "../../client/tunnel_dialer.ts";
import type { Carrier } from "../../proto/link/link.ts";
import { ProbeTarget } from "../support/peers/probe_target.ts";
import { Prng } from "../support/memory/prng.ts";
import { readToEnd, writeAll } from "../support/peers/sockets.ts";
import { PromisedReads } from "../support/watch/promised_reads.ts";
import { portOf, Tunnel } from "../support/rigs/tunnel_harness.ts";
import { until } from "../support/watch/event_loop.ts";

const CARRIERS: readonly Carrier[] = ["streams", "packets"];
const PROTOCOLS: readonly FrontendProtocol[] = ["grpc", "http-connect"];

/** A forwarded port of `tunnel`, and what was refused there. */
class Forwarded implements AsyncDisposable {
  readonly refusals: string[] = [];
  #opened!: Forward;

  private constructor(private readonly dialer: TunnelDialer) {}

  static async open(
    tunnel: Tunnel,
    way: FrontendProtocol,
    address: string,
    options: { protocol?: "tcp" | "udp"; node?: string } = {},
  ): Promise<Forwarded> {
    const dialer = openDialer(await tunnel.route(way));
    const forwarded = new Forwarded(dialer);
    forwarded.#opened = await forward({
      hostname: "127.0.0.1",
      port: 0,
      address,
      protocol: "tcp",
      ...options,
      dialer,
      onRefused: ({ message }) => forwarded.refusals.push(message),
      onProblem: (line) => forwarded.refusals.push(line),
    });
    return forwarded;
  }

  get port(): number {
    return portOf(this.#opened.listening);
  }

  connect(): Promise<Deno.TcpConn> {
    return Deno.connect({ hostname: "127.0.0.1", port: this.port });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened.close();
    this.dialer.close();
  }
}

for (const carrier of CARRIERS) {
  for (const way of PROTOCOLS) {
    for (const frontend of ["unix", "tcp"] as const) {
      const name = `${carrier}, ${way} over ${frontend}`;

      Deno.test(`${name}: a forwarded port carries both ways, with its ends`, async () => {
        await using tunnel = await Tunnel.linked(carrier, { frontend });
        await using target = new ProbeTarget();
        await using port = await Forwarded.open(tunnel, way, target.address);
        const bytes = new Prng(8).bytes(1 << 20);
        const caller = await port.connect();
        const sending = writeAll(caller, bytes)
          .then(() => caller.closeWrite());
        const far = await target.next();
        await far.ended;
        await sending;
        assertEquals(far.bytes, bytes);
        far.send(bytes);
        far.finish();
        assertEquals(await readToEnd(caller), bytes);
        caller.close();
        assertEquals(port.refusals, []);
      });
    }

    Deno.test(`${carrier}, ${way}: a caller that listens first rides the path of one that speaks first`, async () => {
      await using tunnel = await Tunnel.linked(carrier);
      await using target = new ProbeTarget("hello");
      await using port = await Forwarded.open(tunnel, way, target.address);
      const bytes = new Prng(9).bytes(1 << 20);
      const buffer = new Uint8Array(64);
      for (const isListening of [false, true]) {
        const caller = await port.connect();
        if (!isListening) await caller.write(bytes.subarray(0, 1));
        assertEquals(await caller.read(buffer), 5);
        if (isListening) await caller.write(bytes.subarray(0, 1));
        const far = await target.next();
        await far.received(1);
        using reads = new PromisedReads();
        const sending = writeAll(caller, bytes).then(() => caller.closeWrite());
        await far.ended;
        far.send(bytes);
        far.finish();
        assertEquals(await readToEnd(caller), bytes);
        await sending;
        assertEquals(reads.count, 0, isListening ? "listens" : "speaks");
        caller.close();
      }
    });
  }
}

Deno.test("a UDP port through CONNECT is refused with the way out", async () => {
  await using tunnel = await Tunnel.linked("streams");
  const caller = await udpSocket();
  await using port = await Forwarded.open(
    tunnel,
    "http-connect",
    "127.0.0.1:9",
    { protocol: "udp" },
  );
  caller.send("query", port.port, "127.0.0.1");
  await until(() => port.refusals.length > 0);
  assertEquals(port.refusals, [
    "Cannot dial udp through CONNECT, which carries tcp only: give " +
    "--proxy-mode=grpc and a server whose frontend speaks it",
  ]);
  caller.close();
});

async function udpSocket(): Promise<Socket> {
  const socket = createSocket("udp4");
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return socket;
}
