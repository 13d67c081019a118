import { assert, assertEquals } from "@std/assert";
import {
  type CarrierRig,
  packetsRig,
  streamsRig,
} from "../../tests/support/rigs/carrier_rig.ts";
import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import {
  RecordedFaults,
  slip,
} from "../../tests/support/watch/recorded_faults.ts";
import { DialError } from "../peer/dial_error.ts";
import type { Conduit, ConduitEvents } from "../transfer/conduit.ts";
import { defineCarrierCompliance } from "../../tests/support/rigs/carrier_compliance.ts";
import { ConnectionPair } from "../../tests/support/memory/connection_pair.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { ScriptedCallee } from "../../tests/support/watch/packet_script.ts";
import { ErrorCode } from "../frames/wire_error.ts";
import { CAPABILITIES_FIELD, PROXY_PATH } from "./capabilities.ts";
import { dialProxy } from "./proxy_client.ts";
import { FIRST_HOLD_MS, FirstHold } from "./first_hold.ts";
import { GONE_LINGER_MS } from "./packet_conduit.ts";
import { STALL_MS } from "./packets_port.ts";

/**
 * Whatever the owner of a conduit, or who dials, throws: the other conduits of
 * the link carry on, on either carrier and at either end.
 */

/** Ends a conduit whose owner throws from `event` at the server. */
type Provoke = (event: keyof ConduitEvents, rig: CarrierRig) => Promise<void>;

const NOTHING: ConduitEvents = {
  onData() {},
  onWritable() {},
  onEnd() {},
  onClose() {},
};

/** The events at the server's end, and what the target does to cause them. */
const EVENTS: readonly (keyof ConduitEvents)[] = ["onData", "onEnd", "onClose"];

const spoilConduit: Provoke = async (event, rig) => {
  const attach = (conduit: Conduit) =>
    conduit.attach({ ...NOTHING, [event]: slip });
  const { target } = await rig.connectUnattached("tcp", {}, attach);
  if (event === "onData") target.send("bytes");
  else if (event === "onEnd") target.finish();
  else target.reset("enough");
};

for (
  const [carrier, open] of [["streams", streamsRig], [
    "packets",
    packetsRig,
  ]] as const
) {
  const test = (what: string, spoil: (rig: CarrierRig) => Promise<void>) =>
    Deno.test(`${carrier}: ${what}`, async () => {
      using recorded = new RecordedFaults();
      const rig = await open();
      const before = await rig.connect();
      await spoil(rig);
      await settled();
      assertEquals(recorded.faults.length, 1, recorded.faults.join());
      const after = await rig.connect();
      for (const { caller, target } of [before, after]) {
        caller.send("there");
        await target.received(5);
        target.send("back");
        await caller.received(4);
      }
      assertEquals(rig.closedReason, undefined);
      assertEquals(rig.link.load, 2);
    });

  for (const event of EVENTS) {
    test(
      `an ${event} that throws costs its conduit`,
      (rig) => spoilConduit(event, rig),
    );
  }

  test("a handler of a connection that throws costs that one", (rig) => {
    // It is never told that it has its conduit.
    rig.connectUnattached("tcp", {}, slip);
    return settled();
  });

  test("a handler of a failure that throws costs nothing", async (rig) => {
    rig.link.dial({ protocol: "tcp", address: "target:1" }, {
      onConnected() {},
      onFailed: slip,
    });
    await settled();
    rig.dials[0]!.answer.failed(new DialError("endpoint", "no"));
  });
}

Deno.test("packets: an agent that cannot even begin to dial says so", async () => {
  using recorded = new RecordedFaults();
  const rig = await packetsRig();
  Object.assign(rig.dials, { push: slip });
  const { outcome } = rig.dial();
  const error = await outcome;
  assertEquals(String(error), "DialError: an internal error");
  assertEquals(recorded.faults, ["link: a slip"]);
  await rig.connect();
});

defineCarrierCompliance("packets", packetsRig);

/** How a connected conduit ends when its callee resets the stream. */
async function endAfter(code: ErrorCode): Promise<string> {
  const timers = new FakeTimers();
  const callee = new ScriptedCallee();
  const pair = new ConnectionPair({
    clock: timers,
    methods: { [PROXY_PATH]: callee.serve },
  });
  let conduit: ConduitProbe | undefined;
  dialProxy(pair.client, { protocol: "tcp", address: "10.0.0.1:443" }, {
    onConnected: (connected) => conduit = new ConduitProbe(connected),
    onFailed: (error) => {
      throw error;
    },
  }, { authority: "server", timers, dialId: 1 });
  await settled();
  callee.answer({ [CAPABILITIES_FIELD]: "half-close" });
  await callee.say({ type: "DIAL_RSP", error: "", connectId: 1, random: 1 });
  assert(conduit !== undefined);
  pair.streams[0]!.reset(code);
  return (await conduit.closed).kind;
}

Deno.test("a stream that was reset on purpose is a reset, never a loss", async () => {
  assertEquals(await endAfter(ErrorCode.ENHANCE_YOUR_CALM), "reset");
  assertEquals(await endAfter(ErrorCode.CANCEL), "reset");
  assertEquals(await endAfter(ErrorCode.INTERNAL_ERROR), "reset");
});

Deno.test("a stream that was refused is a loss", async () => {
  assertEquals(await endAfter(ErrorCode.REFUSED_STREAM), "lost");
});

function setUp() {
  const timers = new FakeTimers();
  const reported = { times: 0 };
  const hold = new FirstHold(timers, { onHoldOver: () => reported.times++ });
  return { timers, reported, hold };
}

Deno.test("what a target says later does not wait, and nobody set a timer", () => {
  const { timers, reported, hold } = setUp();
  assertEquals(timers.pendingCount, 0);
  timers.advance(FIRST_HOLD_MS);
  assertEquals([hold.mustWait(), reported.times, timers.pendingCount], [
    false,
    0,
    0,
  ]);
});

Deno.test("it counts from the answer", () => {
  const { timers, hold } = setUp();
  timers.advance(FIRST_HOLD_MS);
  hold.restart();
  assertEquals(hold.mustWait(), true);
});

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
    await ends[first].finish();
    assertEquals(state(), [1, 1]);
    ends[first === "caller" ? "target" : "caller"].finish();
    await settled();
    assertEquals(state(), [0, 0]);
  });
}
