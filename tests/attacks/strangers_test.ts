/**
 * Strangers in numbers, at a whole server: who is honest gets in all the same,
 * and what was overdone is counted.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { certificates } from "../support/certificates.ts";
import { readToEnd, writeAll } from "../support/sockets.ts";
import { eventually, portOf, Tunnel } from "../support/tunnel_harness.ts";
import { HostilePeer } from "./hostile_peer.ts";
import { greeting } from "./octets.ts";

const LIMITS = "tunnel_server_limits_reached_total";

/** So many connections that say nothing. */
function silent(port: number, count: number): Promise<Deno.TcpConn[]> {
  return Promise.all(
    Array.from({ length: count }, () => Deno.connect({ port })),
  );
}

/** They are accepted in no order that we know. */
async function untilEnded(
  crowd: readonly Deno.TcpConn[],
  count: number,
): Promise<void> {
  let ended = 0;
  for (const conn of crowd) {
    void conn.read(new Uint8Array(1)).catch(() => {}).then(() => ended++);
  }
  await eventually(`${count} are ended`, () => ended >= count);
}

Deno.test("a crowd that says nothing displaces itself, and an agent links beside it", async () => {
  const intake = { sourceStrangersMax: 10 };
  await using tunnel = await Tunnel.open({ server: { intake } });
  const crowd = await silent(tunnel.agentPort, 30);
  await untilEnded(crowd, 20);
  const reached = `${LIMITS}{limit="strangers",scope="source"}`;
  assertEquals(await tunnel.metric(reached), 20);
  assertEquals(await tunnel.metric("tunnel_server_strangers"), 10);
  await tunnel.link({});
  const { caller, target } = await tunnel.connect("http-connect");
  caller.send("hello");
  await target.received(5);
  caller.reset("seen enough");
  for (const conn of crowd) conn.close();
});

Deno.test("beyond the limit on connections callers are refused until one leaves", async () => {
  const intake = { connectionsMax: 2 };
  await using tunnel = await Tunnel.open({ server: { intake } });
  const path = tunnel.socketPath;
  const open = () => Deno.connect({ transport: "unix", path });
  const callers = [await open(), await open()];
  const third = await open();
  assertEquals((await readToEnd(third)).length, 0);
  third.close();
  const reached = `${LIMITS}{limit="connections",scope="all"}`;
  assertEquals(await tunnel.metric(reached), 1);
  for (const caller of callers) caller.close();
  await eventually(
    "no caller left",
    async () => await tunnel.metric("tunnel_server_connections") === 0,
  );
  const fourth = await open();
  await writeAll(fourth, new TextEncoder().encode("NO /\r\n\r\n"));
  assertEquals((await readToEnd(fourth)).length > 0, true);
  fourth.close();
});

Deno.test("a stranger who says too much is told so and ended", async () => {
  await using tunnel = await Tunnel.open();
  const { ca } = await certificates();
  const peer = await HostilePeer.open({
    kind: "tls",
    port: tunnel.agentPort,
    ca,
    alpn: "h2",
  });
  await peer.say(greeting());
  const round = new Uint8Array(16 * 1024);
  while (await peer.say(round));
  const { code } = await peer.ended;
  // The first octets that are no frame may be judged before there are too many.
  assertEquals(["ENHANCE_YOUR_CALM", "PROTOCOL_ERROR"].includes(code), true);
});

Deno.test("a client that says nothing to the health port is nobody's trouble", async () => {
  await using tunnel = await Tunnel.open();
  const { health } = tunnel.server.addresses;
  const crowd = await silent(portOf(health), 300);
  await untilEnded(crowd, 44);
  const reached = `${LIMITS}{limit="http_connections",scope="all"}`;
  assertEquals(await tunnel.metric(reached) >= 44, true);
  for (const conn of crowd) conn.close();
});
