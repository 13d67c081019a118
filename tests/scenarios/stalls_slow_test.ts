/**
 * Callers and targets that stop reading, and what that costs others: nothing in
 * the streams carrier; in the packets carrier a bounded hold of ten seconds,
 * then only the stalled connection is reset, and it is counted.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import type { FrontendProtocol } from "../../client/tunnel_route.ts";
import { metricAt, Tunnel } from "../support/rigs/tunnel_harness.ts";

const PROTOCOLS: readonly FrontendProtocol[] = ["grpc", "http-connect"];
const MIB = 1024 * 1024;

for (const protocol of PROTOCOLS) {
  Deno.test(`streams, ${protocol}: stalled callers and stalled targets slow nobody`, async () => {
    await using tunnel = await Tunnel.linked("streams");
    const downloads = [];
    const uploads = [];
    for (let index = 0; index < 4; index++) {
      const download = await tunnel.connect(protocol);
      download.caller.stopReading();
      download.target.send(new Uint8Array(24 * MIB));
      downloads.push(download);
      const upload = await tunnel.connect(protocol);
      upload.target.stopReading();
      upload.caller.send(new Uint8Array(24 * MIB));
      uploads.push(upload);
    }
    // More than all windows on the way: whoever can stall has stalled.
    const other = await tunnel.connect(protocol);
    other.target.send(new Uint8Array(8 * MIB));
    other.caller.send(new Uint8Array(8 * MIB));
    await other.caller.received(8 * MIB);
    await other.target.received(8 * MIB);
    for (const { caller, target } of [...downloads, ...uploads]) {
      assertEquals([caller.end, target.end], [undefined, undefined]);
    }
    for (const { caller, target } of downloads) {
      assert(caller.receivedBytes < 24 * MIB);
      // Backpressure reaches the target itself.
      assert(target.queuedBytes > 0, "nothing was held back");
    }
    for (const { caller } of uploads) {
      assert(caller.queuedBytes > 0, "nothing was held back");
    }
    // Once they read again, all of it arrives.
    const [download] = downloads;
    download!.caller.startReading();
    await download!.caller.received(24 * MIB);
    const [upload] = uploads;
    upload!.target.startReading();
    await upload!.target.received(24 * MIB);
  });
}

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
