/**
 * Whatever the owner of a conduit, or who dials, throws: the other conduits of
 * the link carry on, on either carrier and at either end.
 */

import { assertEquals } from "@std/assert";
import {
  type CarrierRig,
  packetsRig,
  streamsRig,
} from "../../tests/support/rigs/carrier_rig.ts";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import {
  RecordedFaults,
  slip,
} from "../../tests/support/watch/recorded_faults.ts";
import { DialError } from "../peer/dial_error.ts";
import type { Conduit, ConduitEvents } from "../transfer/conduit.ts";

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
