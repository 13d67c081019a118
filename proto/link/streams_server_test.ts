import { assert, assertEquals } from "@std/assert";
import { defineCarrierCompliance } from "../../tests/support/rigs/carrier_compliance.ts";
import { streamsRig } from "../../tests/support/rigs/carrier_rig.ts";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { GONE_LINGER_MS } from "./packet_conduit.ts";
import { STALL_MS } from "./packets_port.ts";

defineCarrierCompliance("streams", streamsRig);

const MIB = 1024 * 1024;

Deno.test("streams: a stalled conduit costs nobody anything, for as long as it likes", async () => {
  const rig = await streamsRig();
  const stalled = [];
  for (let i = 0; i < 8; i++) {
    const pair = await rig.connect();
    pair.caller.stopReading();
    pair.target.stopReading();
    pair.caller.send(new Uint8Array(8 * MIB));
    pair.target.send(new Uint8Array(8 * MIB));
    stalled.push(pair);
  }
  await settled();
  rig.timers.advance(10 * (STALL_MS + GONE_LINGER_MS));
  const { caller, target } = await rig.connect();
  target.send(new Uint8Array(8 * MIB));
  await caller.received(8 * MIB);
  caller.send(new Uint8Array(8 * MIB));
  await target.received(8 * MIB);
  assertEquals(rig.observer.stalled, 0);
  for (const pair of stalled) {
    assertEquals([pair.caller.end, pair.target.end], [undefined, undefined]);
    pair.caller.startReading();
    await pair.caller.received(8 * MIB);
  }
});

Deno.test("streams: GOAWAY of the agent is a drain; what runs goes on", async () => {
  const rig = await streamsRig();
  const { caller, target } = await rig.connect();
  rig.pair.server.shutdown("the agent is going");
  await settled();
  assertEquals(rig.link.isDraining, true);
  const error = await rig.dial().outcome;
  assert(error !== "connected");
  assertEquals(error.reason, "link-lost");
  caller.send("still here");
  await target.received(10);
  assertEquals(rig.link.load, 1);
});

Deno.test("streams: each conduit and each dial counts as load", async () => {
  const rig = await streamsRig();
  rig.dial();
  await settled();
  const { caller } = await rig.connect();
  await settled();
  assertEquals(rig.link.load, 1 + 1);
  caller.reset("done");
  assertEquals(rig.link.load, 1);
});

for (const first of ["caller", "target"] as const) {
  Deno.test(`streams: a conduit of which the ${first} has said all is ending, until it is over`, async () => {
    const rig = await streamsRig();
    const ends = await rig.connect();
    await settled();
    const state = () => [rig.link.load, rig.link.ending];
    assertEquals(state(), [1, 0]);
    ends[first].finish();
    await settled();
    assertEquals(state(), [1, 1]);
    ends[first === "caller" ? "target" : "caller"].finish();
    await settled();
    assertEquals(state(), [0, 0]);
  });
}
