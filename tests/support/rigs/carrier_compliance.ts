/**
 * What every carrier promises, as tests that run for each of them; what a whole
 * tunnel promises as well is in `tunnel_promises.ts`.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { DialError } from "../../../proto/peer/dial_error.ts";
import type { ConduitEnd } from "../../../proto/transfer/conduit.ts";
import type { CarrierRig } from "./carrier_rig.ts";
import { ConduitProbe, settled } from "../memory/conduit_probe.ts";
import { MemoryConduit } from "../memory/memory_conduit.ts";
import { PROMISES_OF_CONNECTIONS } from "./tunnel_promises.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

type ConduitReset = Exclude<ConduitEnd, { readonly kind: "clean" }>;

/** One promise; fails by throwing. */
type Check = (rig: CarrierRig) => Promise<void>;

/** By the sentence that each one makes true. */
const PROMISES: Readonly<Record<string, Check>> = {
  ...PROMISES_OF_CONNECTIONS,

  "an owner that attaches late misses nothing": async (rig) => {
    const { conduit, target } = await rig.connectUnattached();
    target.send("banner");
    await target.finish();
    const caller = new ConduitProbe(conduit);
    assertEquals(caller.text, "", "nothing is told inside attach");
    await caller.ended;
    assertEquals(caller.text, "banner");
    caller.finish();
    assertEquals(await caller.closed, { kind: "clean" });
    const lost = await rig.connectUnattached();
    await rig.pair.break("cable cut");
    assertEquals((await new ConduitProbe(lost.conduit).closed).kind, "lost");
  },

  "early data is the first that the target receives": async (rig) => {
    const earlyData = new TextEncoder().encode("early ");
    const { caller, target } = await rig.connect("tcp", { earlyData });
    caller.send("and late");
    await target.received(14);
    assertEquals(target.text, "early and late");
  },

  "a reset of the target is a reset at the caller": async (rig) => {
    const { caller, target } = await rig.connect();
    target.reset("connection reset by peer");
    assertEquals(await caller.closed, {
      kind: "reset",
      reason: "connection reset by peer",
    });
    assertEquals(caller.hasEnded, false);
    assertEquals(rig.link.load, 0);
  },

  "a loss behind the target is a loss at the caller": async (rig) => {
    const { caller, target } = await rig.connect();
    target.reset("node power lost", "lost");
    assertEquals(await caller.closed, {
      kind: "lost",
      reason: "node power lost",
    });
  },

  "a reset of the caller is a reset at the target": async (rig) => {
    const { caller, target } = await rig.connect();
    caller.reset("gave up");
    assertEquals((await target.closed).kind, "reset");
    assertEquals(target.hasEnded, false);
    assertEquals(rig.link.load, 0);
  },

  "a broken link is a loss at both ends, never an end": async (rig) => {
    const { caller, target } = await rig.connect();
    rig.pair.break("cable cut");
    const end = await caller.closed;
    assertEquals(end.kind, "lost");
    assert(end.kind === "lost" && end.reason.includes("cable cut"));
    assertEquals((await target.closed).kind, "lost");
    assertEquals([caller.hasEnded, target.hasEnded], [false, false]);
    await settled();
    assert(rig.closedReason?.includes("cable cut"));
    assert(rig.agentClosedReason?.includes("cable cut"));
    assertEquals(rig.link.load, 0);
  },

  "a dial that fails says why in the agent's words": async (rig) => {
    const { outcome } = rig.dial();
    await settled();
    rig.dials[0]!.answer.failed(
      new DialError("endpoint", "dial tcp 10.0.0.1:1: connection refused"),
    );
    const error = await outcome;
    assert(error !== "connected");
    assertEquals(error.message, "dial tcp 10.0.0.1:1: connection refused");
    assertEquals(error.reason, "endpoint");
    assertEquals(rig.link.load, 0);
  },

  "a link lost during a dial fails it at once": async (rig) => {
    const { outcome } = rig.dial();
    await settled();
    rig.pair.break("agent killed");
    const error = await outcome;
    assert(error !== "connected");
    assertEquals(error.reason, "link-lost");
    assertEquals(rig.dials[0]!.isCancelled, true);
    assertEquals(rig.link.load, 0);
  },

  "50 cancelled dials leak nothing": async (rig) => {
    const timersBefore = rig.timers.pendingCount;
    const dials = Array.from({ length: 50 }, () => rig.dial());
    await settled();
    assertEquals(rig.dials.length, 50);
    assertEquals(rig.link.load, 50);
    for (const dial of dials) dial.cancel();
    await settled();
    assertEquals(
      rig.dials.map((dial) => dial.isCancelled),
      Array(50).fill(true),
    );
    assertEquals(rig.link.load, 0);
    assertEquals(rig.timers.pendingCount, timersBefore);
    const { caller, target } = await rig.connect();
    caller.send("still works");
    await target.received(11);
  },

  "a dial answered after it was cancelled is closed": async (rig) => {
    const dial = rig.dial();
    await settled();
    const [late, far] = MemoryConduit.pair();
    dial.cancel();
    rig.dials[0]!.answer.connected(late);
    await settled();
    assertEquals(far.closed?.kind, "reset");
    assertEquals(rig.link.load, 0);
  },

  "conduits that stall do not stop another one": async (rig) => {
    const stalled = await connectMany(rig, 8);
    for (const { caller, target } of stalled) {
      caller.stopReading();
      target.send(new Uint8Array(MIB / 4));
    }
    await settled();
    const { caller, target } = await rig.connect();
    target.send(new Uint8Array(4 * MIB));
    await caller.received(4 * MIB);
    caller.send("echo");
    await target.received(4);
    for (const pair of stalled) pair.caller.startReading();
    for (const pair of stalled) await pair.caller.received(MIB / 4);
  },

  "a stalled caller stalls its target, in bytes": async (rig) => {
    const { caller, target } = await rig.connect();
    caller.stopReading();
    await target.send(new Uint8Array(64 * MIB));
    assert(target.queuedBytes > 30 * MIB, `${target.queuedBytes} left`);
  },

  "datagrams keep their borders, empty ones too": async (rig) => {
    const { caller, target } = await rig.connect("udp");
    for (const sizes of [[5, 0, 1400], [65_507]]) {
      const before = caller.receivedBytes;
      for (const size of sizes) {
        caller.send(new Uint8Array(size));
        target.send(new Uint8Array(size));
      }
      const sum = sizes.reduce((a, b) => a + b);
      await target.received(before + sum);
      await caller.received(before + sum);
    }
    for (const probe of [caller, target]) {
      assertEquals(probe.chunks.map((c) => c.length), [5, 0, 1400, 65_507]);
    }
  },

  "datagrams for a reader that does not read are dropped and counted": async (
    rig,
  ) => {
    const { caller, target } = await rig.connect("udp");
    caller.stopReading();
    for (let i = 0; i < 40; i++) {
      await target.send(new Uint8Array(10_000));
    }
    assertEquals(caller.receivedBytes, 260_000);
    assertEquals(rig.observer.dropped, 14);
    caller.startReading();
    target.send(new Uint8Array(10_000));
    await caller.received(270_000);
    assertEquals(caller.end, undefined);
  },

  "a datagram longer than any datagram is dropped and counted": async (rig) => {
    const { caller, target } = await rig.connect("udp");
    caller.send(new Uint8Array(65_536));
    caller.send("next");
    await target.received(4);
    assertEquals(target.chunks.map((chunk) => chunk.length), [4]);
    assertEquals(rig.observer.sent.get("DATA"), 1, "it was not even sent");
    assertEquals(rig.observer.dropped, 1);
  },

  "drain is seen, and what comes is still served": async (rig) => {
    assertEquals(rig.link.isDraining, false);
    rig.drain();
    await settled();
    assertEquals(rig.link.isDraining, true);
    const { caller, target } = await rig.connect();
    caller.send("served");
    await target.received(6);
  },

  "closing the link loses its conduits and sends the agent the reason": async (
    rig,
  ) => {
    const { caller, target } = await rig.connect();
    rig.link.close("the certificate was revoked");
    assertEquals((await caller.closed).kind, "lost");
    assertEquals((await target.closed).kind, "lost");
    await settled();
    assertEquals(rig.agentClosedReason, "the certificate was revoked");
    const error = await rig.dial().outcome;
    assert(error !== "connected");
    assertEquals(error.reason, "link-lost");
  },

  "the peer is known by what it announced": async (rig) => {
    await settled();
    assertEquals(rig.link.peer.agentId, "agent-1");
    assertEquals(rig.link.peer.identifiers.host, ["node1"]);
    assertEquals(rig.link.peer.remoteAddress, "10.0.0.7:4711");
  },
};

/** Defines the tests. @param name Of the carrier, for their names. */
export function defineCarrierCompliance(
  name: string,
  open: (budgetBytes?: number) => Promise<CarrierRig>,
): void {
  for (const [sentence, check] of Object.entries(PROMISES)) {
    Deno.test(`${name}: ${sentence}`, async () => check(await open()));
  }
  const overBudget = "over the process's budget who stalls longest is reset";
  Deno.test(`${name}: ${overBudget}, and nobody else`, async () => {
    await resetsWhoStallsLongest(await open(100 * KIB));
  });
}

const resetsWhoStallsLongest: Check = async (rig) => {
  const [longest, later, reader] = await connectMany(rig, 3);
  for (const { caller, target } of [longest!, later!]) {
    caller.stopReading();
    await target.send(new Uint8Array(40 * KIB));
  }
  reader!.target.send(new Uint8Array(MIB));
  await reader!.caller.received(MIB);
  assertEquals(rig.budget.resets, 0, "nobody was over it");
  longest!.target.send(new Uint8Array(24 * KIB));
  const { kind, reason } = await longest!.caller.closed as ConduitReset;
  assertEquals(kind, "reset");
  assert(reason.includes("bytes wait in this process"), reason);
  assertEquals((await longest!.target.closed).kind, "reset");
  assertEquals(rig.budget.resets, 1);
  later!.caller.startReading();
  reader!.target.send("more");
  await reader!.caller.received(MIB + 4);
  await settled();
  assertEquals([rig.budget.bytes, rig.closedReason], [0, undefined]);
  later!.caller.stopReading();
  await later!.target.send(new Uint8Array(40 * KIB));
  assert(rig.budget.bytes >= 40 * KIB);
  await rig.pair.break("cable cut");
  assertEquals([rig.budget.bytes, rig.budget.members], [0, 0]);
};

async function connectMany(rig: CarrierRig, count: number) {
  const pairs: Awaited<ReturnType<CarrierRig["connect"]>>[] = [];
  for (let i = 0; i < count; i++) pairs.push(await rig.connect());
  return pairs;
}
