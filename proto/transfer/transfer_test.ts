import { assertEquals, assertThrows } from "@std/assert";
import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  RecordedFaults,
  slip,
} from "../../tests/support/watch/recorded_faults.ts";
import {
  CLEAN,
  joined,
  pattern,
} from "../../tests/support/memory/joined_conduits.ts";
import { sameBytes } from "../bytes/byte_arrays.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import { join, transfer } from "./transfer.ts";

Deno.test("bytes go both ways, then both ends close in order", async () => {
  const { left, right, result } = joined();
  left.send("ping");
  await right.received(4);
  right.send("pong!");
  await left.received(5);
  left.finish();
  right.finish();
  assertEquals(await result, {
    end: CLEAN,
    endA: CLEAN,
    endB: CLEAN,
    bytesAToB: 4,
    bytesBToA: 5,
    droppedDatagrams: 0,
    durationMs: 0,
  });
  assertEquals([right.text, left.text], ["ping", "pong!"]);
});

for (const bytes of [1_024, 8 * 1024 * 1024]) {
  Deno.test(`writing ${bytes} bytes and ending at once delivers all`, async () => {
    const { left, right, result } = joined({ windowBytes: 100_000 });
    const sent = pattern(bytes);
    left.send(sent);
    left.finish();
    await right.ended;
    assertEquals(sameBytes(right.bytes, sent), true);
    right.finish();
    assertEquals((await result).end, CLEAN);
  });
}

Deno.test("a half-close leaves the other direction open", async () => {
  const { left, right, result } = joined();
  left.finish();
  await right.ended;
  assertEquals(left.hasEnded, false);
  right.send("still here");
  await left.received(10);
  right.finish();
  await result;
  assertEquals(left.text, "still here");
});

Deno.test("an end waits behind what the other side has not taken", async () => {
  const { left, right } = joined({ windowBytes: 100 });
  right.stopReading();
  left.send(new Uint8Array(150));
  await left.finish();
  assertEquals([right.receivedBytes, right.hasEnded], [100, false]);
  right.startReading();
  await right.ended;
  assertEquals(right.receivedBytes, 150);
  right.reset("done");
});

Deno.test("a side that is closed still delivers what it sent", async () => {
  const { left, right, b, result } = joined({ windowBytes: 100 });
  right.finish();
  await left.ended;
  right.stopReading();
  left.send(new Uint8Array(150));
  left.finish();
  assertEquals(await left.closed, CLEAN);
  assertEquals(b.closed, undefined);
  right.startReading();
  await right.ended;
  assertEquals(right.receivedBytes, 150);
  assertEquals((await result).end, CLEAN);
});

Deno.test("a reader that stalls stalls its writer, and nobody's memory grows", async () => {
  const { left, right, a } = joined({ windowBytes: 1_000 });
  right.stopReading();
  await left.send(new Uint8Array(50_000));
  assertEquals(right.receivedBytes, 1_000);
  assertEquals(a.unconsumedBytes, 1_000);
  assertEquals(left.queuedBytes, 48_000);
  right.startReading();
  await right.received(50_000);
  assertEquals(a.unconsumedBytes, 0);
  left.reset("done");
});

Deno.test("a stall of one direction leaves the other one running", async () => {
  const { left, right } = joined({ windowBytes: 1_000 });
  right.stopReading();
  await left.send(new Uint8Array(50_000));
  right.send("alive");
  await left.received(5);
  assertEquals(left.text, "alive");
  left.reset("done");
});

Deno.test("the clock measures how long it took", async () => {
  const timers = new FakeTimers();
  const { left, result } = joined({}, { clock: timers });
  timers.advance(1_234);
  left.reset("enough");
  assertEquals((await result).durationMs, 1_234);
});

Deno.test("datagrams stay whole, empty ones too", async () => {
  const { left, right, result } = joined({
    datagrams: true,
    windowBytes: 1_000,
  });
  for (const bytes of [3, 0, 700, 1]) left.send(new Uint8Array(bytes));
  await right.received(704);
  assertEquals(right.chunks.map((chunk) => chunk.length), [3, 0, 700, 1]);
  left.reset("done");
  assertEquals((await result).bytesAToB, 704);
});

Deno.test("refuses to join datagrams with a byte stream", () => {
  const [datagrams] = MemoryConduit.pair({ datagrams: true });
  const [stream] = MemoryConduit.pair();
  assertThrows(() => transfer(datagrams, stream), TypeError, "datagrams");
  assertThrows(() => transfer(stream, datagrams), TypeError, "datagrams");
  assertThrows(() => join(stream, datagrams), TypeError, "datagrams");
});

Deno.test("what nobody waits for is joined all the same", async () => {
  const [leftLine, a] = MemoryConduit.pair();
  const [b, rightLine] = MemoryConduit.pair();
  const left = new ConduitProbe(leftLine);
  const right = new ConduitProbe(rightLine);
  join(a, b);
  left.send("to the right");
  left.finish();
  await right.ended;
  right.finish();
  assertEquals([await left.closed, await right.closed], [CLEAN, CLEAN]);
  assertEquals(right.text, "to the right");
});

for (const entry of ["write", "end", "consumed"] as const) {
  Deno.test(`a conduit whose ${entry} throws is lost, and the other one with it`, async () => {
    using recorded = new RecordedFaults();
    const { left, a, b, result } = joined();
    const spoiled = entry === "consumed" ? a : b;
    spoiled[entry] = slip;
    left.send("bytes");
    left.finish();
    const { end } = await result;
    assertEquals(end, { kind: "lost", reason: "an internal error" });
    assertEquals(recorded.faults, ["conduit: a slip"]);
  });
}

Deno.test("who wants to know of the end and throws is only reported", async () => {
  using recorded = new RecordedFaults();
  const [a, left] = MemoryConduit.pair();
  const [b, right] = MemoryConduit.pair();
  const probes = [new ConduitProbe(left), new ConduitProbe(right)];
  join(a, b, slip);
  for (const probe of probes) probe.finish();
  for (const probe of probes) assertEquals(await probe.closed, CLEAN);
  await settled();
  assertEquals(recorded.faults, ["conduit: a slip"]);
});
