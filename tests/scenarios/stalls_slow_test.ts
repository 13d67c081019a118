/**
 * Stalls in the packets carrier: a bounded hold of ten seconds, then only the
 * stalled connection is reset, and it is counted.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { metricAt, Tunnel } from "../support/tunnel_harness.ts";

const MIB = 1024 * 1024;

Deno.test("packets: a stalled caller holds the others for a while, then is reset alone", async () => {
  await using tunnel = await Tunnel.linked("packets");
  const stalled = await tunnel.connect("grpc");
  const other = await tunnel.connect("grpc");
  stalled.caller.stopReading();
  stalled.target.send(new Uint8Array(64 * MIB));
  const end = await stalled.caller.closed;
  assertEquals(end.kind, "reset");
  assertEquals(stalled.caller.hasEnded, false);
  assert((await stalled.target.closed).kind !== "clean");
  other.target.send(new Uint8Array(8 * MIB));
  await other.caller.received(8 * MIB);
  assertEquals(other.caller.end, undefined);
  const counted = "tunnel_server_stalled_connections_reset_total";
  assertEquals(await tunnel.metric(counted), 1);
});

Deno.test("packets: a stalled target holds the others for a while, then is reset alone", async () => {
  await using tunnel = await Tunnel.linked("packets");
  const stalled = await tunnel.connect("http-connect");
  const other = await tunnel.connect("http-connect");
  stalled.target.stopReading();
  stalled.caller.send(new Uint8Array(64 * MIB));
  assert((await stalled.caller.closed).kind !== "clean");
  // Who does not read does not notice, either.
  stalled.target.startReading();
  assertEquals((await stalled.target.closed).kind, "reset");
  other.caller.send(new Uint8Array(8 * MIB));
  await other.target.received(8 * MIB);
  assertEquals(other.caller.end, undefined);
  const agent = tunnel.agents[0]!.running.addresses.health;
  const counted = "tunnel_agent_stalled_connections_reset_total";
  assertEquals(await metricAt(agent, counted), 1);
});
