/**
 * Unauthenticated peers in numbers, at a whole server: who is honest gets in
 * all the same, and what was overdone is counted.
 *
 * @module
 */

import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import { assert, assertEquals } from "@std/assert";
import {
  FAULTS_MAX,
  PENALTY_WAITING_MAX,
  TRY_PACE_MS,
} from "../../net/admission/penalty.ts";
import { certificates } from "../support/certificates/certificates.ts";
import { readToEnd, writeAll } from "../support/peers/sockets.ts";
import { eventually, portOf, Tunnel } from "../support/rigs/tunnel_harness.ts";
import { HostilePeer, type Port } from "./hostile_peer.ts";
import { END_HEADERS, frame, greeting, Type, uint32 } from "./bytes.ts";

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
  const limiter = { sourceUnauthenticatedMax: 10 };
  await using tunnel = await Tunnel.open({ server: { limiter } });
  const crowd = await silent(tunnel.agentPort, 30);
  await untilEnded(crowd, 20);
  const reached =
    `${LIMITS}{limit="unauthenticated_connections",scope="source"}`;
  assertEquals(await tunnel.metric(reached), 20);
  assertEquals(
    await tunnel.metric("tunnel_server_unauthenticated_connections"),
    10,
  );
  await tunnel.link({});
  const { caller, target } = await tunnel.connect("http-connect");
  caller.send("hello");
  await target.received(5);
  caller.reset("seen enough");
  for (const conn of crowd) conn.close();
});

Deno.test("beyond the limit on connections callers are refused until one leaves", async () => {
  const limiter = { connectionsMax: 2 };
  await using tunnel = await Tunnel.open({ server: { limiter } });
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

Deno.test("an unauthenticated peer who says too much is told so and ended", async () => {
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
  // The first bytes that are no frame may be refused before there are too many.
  assertEquals(["ENHANCE_YOUR_CALM", "PROTOCOL_ERROR"].includes(code), true);
});

/** As much as a ClientHello has to be to get a handshake. */
const TLS_RECORD = new Uint8Array([22, 3, 1, 0, 1, 1]);

/** Breaks a rule as its first words. */
async function breakRule(route: Port): Promise<string> {
  const peer = await HostilePeer.open(route);
  const push = frame(Type.PUSH_PROMISE, END_HEADERS, 1, uint32(2));
  await peer.say(joinedBytes([greeting(), push]));
  return (await peer.ended).code;
}

Deno.test("a source that breaks rules is slowed down, its links stay and an agent behind it gets in", async () => {
  await using tunnel = await Tunnel.open();
  const { ca } = await certificates();
  await tunnel.link({});
  const route = {
    kind: "tls",
    port: tunnel.agentPort,
    ca,
    alpn: "h2",
  } as const;
  for (let index = 0; index <= FAULTS_MAX; index++) {
    assertEquals(await breakRule(route), "PROTOCOL_ERROR");
  }
  await eventually(
    "the source is slowed down",
    async () =>
      await tunnel.metric("tunnel_server_penalized_sources_total") === 1,
  );
  // What comes at once waits for its turn; what finds no place is refused.
  const crowd = await silent(tunnel.agentPort, PENALTY_WAITING_MAX + 10);
  for (const conn of crowd) await writeAll(conn, TLS_RECORD);
  const refused = `${LIMITS}{limit="faults",scope="source"}`;
  await eventually(
    "those without a place are refused",
    async () => await tunnel.metric(refused) >= 9,
  );
  const { caller, target } = await tunnel.connect("http-connect");
  caller.send("hello");
  await target.received(5);
  caller.reset("seen enough");
  for (const conn of crowd) conn.close();
  await tunnel.link({});
});

Deno.test("a process at the frontend's socket that breaks rules waits for its turn", async () => {
  await using tunnel = await Tunnel.open();
  const route = { kind: "unix", path: tunnel.socketPath } as const;
  for (let index = 0; index <= FAULTS_MAX; index++) {
    assertEquals(await breakRule(route), "PROTOCOL_ERROR");
  }
  const penalized = await tunnel.metric(
    "tunnel_server_penalized_sources_total",
  );
  assertEquals(penalized, 1);
  const startMs = performance.now();
  assertEquals(await breakRule(route), "PROTOCOL_ERROR");
  // Not a wait of ours: the server makes the program wait.
  assert(performance.now() - startMs > TRY_PACE_MS / 2);
});

Deno.test("a client that says nothing to the health port is nobody's trouble", async () => {
  await using tunnel = await Tunnel.open();
  const { health } = tunnel.server.addresses;
  const crowd = await silent(portOf(health), 300);
  await untilEnded(crowd, 200);
  const reached = `${LIMITS}{limit="http_connections",scope="source"}`;
  assertEquals(await tunnel.metric(reached) >= 200, true);
  for (const conn of crowd) conn.close();
});
