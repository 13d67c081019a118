import { assert, assertEquals } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { join, type TransferResult } from "../../proto/transfer/transfer.ts";
import { conduitInfoOf, conduitQuery, conduitsAnswer } from "./conduit_info.ts";
import type { ConnectionFacts } from "../log/connection_log.ts";
import type { ConduitCarrier } from "./live_conduit.ts";
import { LiveConduits, type LiveDial } from "./live_conduits.ts";
import { RATE_TICK_MS } from "./rate_samples.ts";

const NOBODY = { received() {}, sent() {}, ended() {} };

const bytes = (count: number) => new Uint8Array(count);

function query(text = "") {
  return conduitQuery(new URLSearchParams(text));
}

/** One connection: caller, target, and what is in between. */
class Rig {
  readonly timers = new FakeTimers();
  readonly list = new LiveConduits(this.timers);
  result: TransferResult | undefined;

  open(id: string, facts: ConnectionFacts = {}, carrier?: ConduitCarrier) {
    const [caller, near] = MemoryConduit.pair();
    const [target, far] = MemoryConduit.pair();
    const live = this.list.open(far, NOBODY, {
      ...{ who: "CN=alice", node: "edge-7" },
      target: { protocol: "tcp", address: "10.0.0.7:5432" },
      ...facts,
    }, {
      ...{ id, askedMs: this.timers.now() },
      ...(carrier === undefined ? {} : { carrier }),
    });
    join(near, live, (result) => this.result = result);
    const ends: string[] = [];
    for (const end of [caller, target]) {
      end.attach({
        onData: (chunk) => end.consumed(chunk.length),
        onWritable() {},
        onEnd() {},
        onClose: (how) =>
          ends.push(how.kind === "clean" ? "clean" : how.reason),
      });
    }
    return { caller, target, ends };
  }
}

Deno.test("what a conduit moves is counted, and how fast in the last seconds", async () => {
  const rig = new Rig();
  const { caller, target } = rig.open("c1");
  caller.write(bytes(1_000));
  target.write(bytes(4_000));
  await settled();
  rig.timers.advance(RATE_TICK_MS - 1_000);
  const young = conduitInfoOf(rig.list, "c1")!;
  assertEquals([young.toTargetBytes, young.fromTargetBytes], [1_000, 4_000]);
  assertEquals([young.toTargetRate, young.fromTargetRate], [250, 1_000]);
  assertEquals([young.idleMs, young.state, young.caller], [
    0,
    "open",
    "CN=alice",
  ]);
  // Two ticks without anything: it is at rest, since the first of them.
  rig.timers.advance(RATE_TICK_MS * 3);
  const quiet = conduitInfoOf(rig.list, "c1")!;
  assertEquals([quiet.toTargetRate, quiet.fromTargetRate], [0, 0]);
  assertEquals(quiet.idleMs, 3 * RATE_TICK_MS - 1_000);
  assertEquals(quiet.waitsFor, "nothing");
  assertEquals(rig.list.totals().fromTargetBytes, 4_000);
  rig.list.kill("c1", "over");
  await settled();
  assertEquals([rig.list.size, rig.list.totals().fromTargetBytes], [0, 4_000]);
  rig.timers.advance(2 * RATE_TICK_MS);
  assertEquals(rig.timers.pendingCount, 0, "no tick without conduits");
});

Deno.test("nothing has a rate when nothing has moved for some seconds", async () => {
  const rig = new Rig();
  const { caller } = rig.open("c1");
  const dial = { id: "d1", askedMs: 0, facts: {}, kill() {} } as LiveDial;
  rig.list.dialBegins(dial);
  caller.write(bytes(100_000));
  await settled();
  assert(rig.list.totals().toTargetRate > 0);
  caller.reset("done");
  rig.list.dialOver(dial);
  await settled();
  rig.timers.advance(17_000);
  const { toTargetRate, dialRate } = rig.list.totals();
  assertEquals([toTargetRate, dialRate], [0, 0]);
  assertEquals(rig.timers.pendingCount, 0, "and no tick is left");
  rig.list.dialBegins(dial);
  rig.timers.advance(1_000);
  assert(rig.list.totals().dialRate > 0, "a dial alone has one, too");
  rig.list.stop();
});

Deno.test("a killed conduit is a reset for both sides, with the reason", async () => {
  const rig = new Rig();
  const { ends } = rig.open("c1");
  rig.open("c2");
  assertEquals(rig.list.kill("c3", "no such"), false);
  assertEquals(rig.list.kill("c1", "killed by alice"), true);
  await settled();
  assertEquals(ends, ["killed by alice", "killed by alice"]);
  assertEquals(rig.result?.end.kind, "reset");
  assertEquals([...rig.list.all()].map(({ id }) => id), ["c2"]);
});

Deno.test("it says who does not read, and which link stands still", async () => {
  const rig = new Rig();
  const carrier: { askedMs?: number; roundTripMs: number } = {
    roundTripMs: 12.3456,
  };
  const { target } = rig.open("c1", {}, carrier);
  assertEquals(conduitInfoOf(rig.list, "c1")!.roundTripMs, 12.35);
  carrier.askedMs = rig.timers.now();
  rig.timers.advance(1_000);
  assertEquals(conduitInfoOf(rig.list, "c1")!.waitsFor, "link");
  // A memory conduit has no state: queues are told by the transfer.
  delete carrier.askedMs;
  const [caller, near] = MemoryConduit.pair({ windowBytes: 10 });
  caller.attach({
    onData() {},
    onWritable() {},
    onEnd() {},
    onClose() {},
  });
  const [slow, far] = MemoryConduit.pair({ windowBytes: 100 });
  const live = rig.list.open(far, NOBODY, {}, { id: "c2", askedMs: 0 });
  join(near, live);
  slow.attach({ onData() {}, onWritable() {}, onEnd() {}, onClose() {} });
  slow.write(bytes(100));
  target.write(bytes(1));
  await settled();
  const stalled = conduitInfoOf(rig.list, "c2")!;
  assertEquals(stalled.queuedBytes, 90);
});

Deno.test("lists are sorted, limited, filtered, and dials stand behind them", async () => {
  const rig = new Rig();
  for (let index = 0; index < 10; index++) {
    const { caller } = rig.open(`c${index}`, { node: `edge-${index % 2}` });
    caller.write(bytes(index));
  }
  let killed = "";
  const dial: LiveDial = {
    id: "d1",
    askedMs: rig.timers.now(),
    facts: { who: "CN=bob", node: "edge-1" },
    kill: (reason) => killed = reason,
  };
  rig.list.dialBegins(dial);
  await settled();
  const ids = (text: string) =>
    conduitsAnswer(rig.list, query(text)).conduits.map(({ id }) => id);
  assertEquals(ids("limit=2"), ["c9", "c8"]);
  assertEquals(ids("sort=bytes&node=edge-1&limit=3"), ["c9", "c7", "c5"]);
  assertEquals(ids("caller=bob"), ["d1"]);
  assertEquals(ids("limit=0"), []);
  assertEquals(conduitsAnswer(rig.list, query("node=edge-1")).total, 6);
  assertEquals(conduitInfoOf(rig.list, "d1")!.waitsFor, "dial");
  assert(rig.list.kill("d1", "enough"));
  assertEquals(killed, "enough");
  rig.list.dialOver(dial);
  assertEquals(rig.list.dials.size, 0);
  rig.list.stop();
});

Deno.test("places are used again, and many conduits are kept apart", async () => {
  const rig = new Rig();
  for (let round = 0; round < 3; round++) {
    for (let index = 0; index < 200; index++) {
      const { caller } = rig.open(`${round}-${index}`);
      caller.write(bytes(index + 1));
    }
    await settled();
    for (const { id, place, sentBytes } of rig.list.all()) {
      assert(place < 200);
      assertEquals(sentBytes, Number(id.split("-")[1]) + 1);
    }
    for (const { id } of [...rig.list.all()]) {
      rig.list.kill(id, "over");
    }
    await settled();
    assertEquals(rig.list.size, 0);
  }
  rig.list.stop();
});

Deno.test("dials of the last minutes have a median", () => {
  const rig = new Rig();
  const { dialTimes } = rig.list;
  assertEquals(dialTimes.percentiles(0, [0.5]), []);
  for (let ms = 1; ms <= 100; ms++) dialTimes.add(0, ms);
  assertEquals(dialTimes.percentiles(0, [0.5, 0.99]), [51, 100]);
  assertEquals(dialTimes.percentiles(301_000, [0.5]), []);
});
