import { assertEquals, assertStringIncludes } from "@std/assert";
import { ConduitProbe } from "../../tests/support/memory/conduit_probe.ts";
import { CLEAN, joined } from "../../tests/support/memory/joined_conduits.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import type { Conduit, ConduitEvents } from "./conduit.ts";
import { join, transfer } from "./transfer.ts";

Deno.test("a conduit that ignores its window is reset, not buffered", async () => {
  const source = new ScriptedConduit();
  const sink = new ScriptedConduit();
  const result = transfer(source, sink, { queueBytesMax: 1_000 });
  source.events.onData(new Uint8Array(1_000));
  assertEquals(source.resets, []);
  source.events.onData(new Uint8Array(1));
  assertStringIncludes(source.resets[0]!, "1001 bytes");
  assertEquals(sink.resets, source.resets);
  source.events.onData(new Uint8Array(1_000_000));
  for (const { events } of [source, sink]) {
    events.onClose({ kind: "reset", reason: "by us" });
  }
  assertStringIncludes(reasonOf((await result).end), "at most 1000");
});

Deno.test("a conduit that calls its early close clean is lost", async () => {
  const source = new ScriptedConduit();
  const [b, far] = MemoryConduit.pair();
  const probe = new ConduitProbe(far);
  const result = transfer(source, b);
  source.events.onClose(CLEAN);
  assertEquals((await probe.closed).kind, "lost");
  assertEquals((await result).end.kind, "lost");
});

Deno.test("a closed conduit gets no more events", () => {
  const source = new ScriptedConduit();
  const sink = new ScriptedConduit();
  transfer(source, sink);
  source.events.onData(Uint8Array.of(1, 2, 3));
  source.events.onEnd();
  sink.events.onEnd();
  source.events.onClose(CLEAN);
  sink.write = (chunk) => chunk.length;
  sink.events.onWritable();
  assertEquals([sink.ends, source.consumedBytes], [1, 0]);
});

Deno.test("an end says whether anybody is left, behind what was queued", () => {
  for (const isGone of [true, false]) {
    const source = new ScriptedConduit();
    const sink = new ScriptedConduit();
    const ends: unknown[] = [];
    sink.end = (gone) => ends.push(gone);
    transfer(source, sink);
    source.events.onData(Uint8Array.of(1, 2, 3));
    source.events.onEnd(isGone);
    assertEquals(ends, []);
    sink.write = (chunk) => chunk.length;
    sink.events.onWritable();
    assertEquals(ends, [isGone]);
  }
});

Deno.test("after a loss neither direction writes, whatever still comes", () => {
  const source = new ScriptedConduit();
  const sink = new ScriptedConduit();
  transfer(source, sink);
  source.events.onData(Uint8Array.of(1, 2, 3));
  source.events.onClose({ kind: "lost", reason: "gone" });
  const writes: string[] = [];
  for (const [name, conduit] of Object.entries({ source, sink })) {
    conduit.write = (chunk) => {
      writes.push(name);
      return chunk.length;
    };
  }
  sink.events.onWritable();
  sink.events.onData(Uint8Array.of(4));
  sink.events.onEnd();
  assertEquals([writes, source.ends], [[], 0]);
});

Deno.test("a sink may close inside write", () => {
  const source = new ScriptedConduit();
  const sink = new ScriptedConduit();
  transfer(source, sink);
  source.events.onData(Uint8Array.of(1, 2, 3));
  sink.write = () => {
    sink.events.onClose({ kind: "reset", reason: "broken pipe" });
    return 2;
  };
  sink.events.onWritable();
  assertEquals(source.resets, ["broken pipe"]);
});

Deno.test("onWritable from inside write loses no byte", async () => {
  const source = new ScriptedConduit();
  const sink = new ScriptedConduit();
  const written: number[] = [];
  let room = 2;
  sink.write = (chunk) => {
    const taken = Math.min(room, chunk.length);
    written.push(...chunk.subarray(0, taken));
    if (taken < chunk.length) {
      room = 10;
      sink.events.onWritable();
    }
    return taken;
  };
  const result = transfer(source, sink);
  source.events.onData(Uint8Array.of(1, 2, 3, 4, 5));
  assertEquals(written, [1, 2, 3, 4, 5]);
  assertEquals(source.consumedBytes, 5);
  for (const { events } of [source, sink]) {
    events.onClose({ kind: "reset", reason: "done" });
  }
  await result;
});

Deno.test("a source that delivers inside consumed keeps its order", () => {
  const source = new ScriptedConduit();
  const sink = new ScriptedConduit();
  const written: number[] = [];
  sink.write = (chunk) => {
    const taken = Math.min(2, chunk.length);
    written.push(...chunk.subarray(0, taken));
    return taken;
  };
  let next = 5;
  source.consumed = () => {
    if (next < 9) source.events.onData(Uint8Array.of(next++));
  };
  transfer(source, sink);
  source.events.onData(Uint8Array.of(1, 2, 3, 4));
  for (let i = 0; i < 8; i++) sink.events.onWritable();
  assertEquals(written, [1, 2, 3, 4, 5, 6, 7, 8]);
});

Deno.test("a datagram that the sink refuses is dropped, counted and credited", async () => {
  const [leftLine, a] = MemoryConduit.pair({ datagrams: true });
  const left = new ConduitProbe(leftLine);
  const full = new ScriptedConduit(true);
  const result = transfer(a, full);
  await left.send(new Uint8Array(10));
  assertEquals(a.unconsumedBytes, 0);
  left.reset("done");
  full.events.onClose({ kind: "reset", reason: "done" });
  const { droppedDatagrams, bytesAToB } = await result;
  assertEquals([droppedDatagrams, bytesAToB], [1, 0]);
});

/** A conduit that takes nothing and does only what the test says. */
class ScriptedConduit implements Conduit {
  events!: ConduitEvents;
  readonly resets: string[] = [];
  consumedBytes = 0;
  ends = 0;

  constructor(readonly datagrams = false) {}

  attach(events: ConduitEvents): void {
    this.events = events;
  }

  write(_chunk: Uint8Array): number {
    return 0;
  }

  end(_isGone?: boolean): void {
    this.ends++;
  }

  reset(reason: string): void {
    this.resets.push(reason);
  }

  consumed(bytes: number): void {
    this.consumedBytes += bytes;
  }
}

function reasonOf(end: { kind: string; reason?: string }): string {
  return end.reason ?? "";
}

for (const from of ["left", "right"] as const) {
  const to = from === "left" ? "right" : "left";
  Deno.test(`a reset from the ${from} is a reset, not an end, with its reason`, async () => {
    const ends = joined();
    ends[from].send("abc");
    await ends[to].received(3);
    ends[from].reset("no more");
    const reset = { kind: "reset", reason: "no more" } as const;
    assertEquals(await ends[to].closed, reset);
    assertEquals(ends[to].hasEnded, false);
    assertEquals((await ends.result).end, reset);
  });

  Deno.test(`a loss on the ${from} is a loss, neither end nor reset`, async () => {
    const ends = joined();
    const path = from === "left" ? ends.leftLine : ends.rightLine;
    ends[from].send("abc");
    await ends[to].received(3);
    path.lose("the link went");
    const lost = { kind: "lost", reason: "the link went" } as const;
    assertEquals(await ends[to].closed, lost);
    assertEquals(ends[to].hasEnded, false);
    assertEquals((await ends.result).end, lost);
  });
}

Deno.test("a reset overtakes what is queued, and frees it", async () => {
  const { left, right, result } = joined({ windowBytes: 1_000 });
  right.stopReading();
  await left.send(new Uint8Array(5_000));
  left.reset("gone");
  assertEquals((await right.closed).kind, "reset");
  assertEquals((await result).bytesAToB, 1_000);
});

Deno.test("a reset after a half-close is a reset all the same", async () => {
  const { left, right, result } = joined();
  left.finish();
  await right.ended;
  left.reset("changed my mind");
  assertEquals((await right.closed).kind, "reset");
  assertEquals((await result).end.kind, "reset");
});

Deno.test("both ends lost at once close once each", async () => {
  const { leftLine, rightLine, left, right, result } = joined();
  leftLine.lose("one");
  rightLine.lose("two");
  assertEquals((await result).end, { kind: "lost", reason: "one" });
  assertEquals([left.end?.kind, right.end?.kind], ["lost", "lost"]);
});

Deno.test("half-closed is said once, and either can be given up then", async () => {
  for (const first of ["left", "right"] as const) {
    const [leftLine, a] = MemoryConduit.pair();
    const [b, rightLine] = MemoryConduit.pair();
    const ends = {
      left: new ConduitProbe(leftLine),
      right: new ConduitProbe(rightLine),
    };
    const received: unknown[] = [];
    const joined = join(a, b, undefined, (which) => received.push(which));
    const other = first === "left" ? "right" : "left";
    ends[first].send("abc");
    ends[first].finish();
    await ends[other].ended;
    assertEquals(received, [joined]);
    assertEquals(joined.bytes, 3);
    joined.giveUp("long enough");
    const reset = { kind: "reset", reason: "long enough" } as const;
    assertEquals([await ends.left.closed, await ends.right.closed], [
      reset,
      reset,
    ]);
  }
});

Deno.test("giving up resets the one that is not closed", async () => {
  const [leftLine, a] = MemoryConduit.pair({ windowBytes: 100 });
  const [b, rightLine] = MemoryConduit.pair({ windowBytes: 100 });
  const left = new ConduitProbe(leftLine);
  const right = new ConduitProbe(rightLine);
  const received: unknown[] = [];
  const joined = join(a, b, undefined, (which) => received.push(which));
  right.finish();
  await left.ended;
  right.stopReading();
  left.send(new Uint8Array(150));
  left.finish();
  assertEquals(await left.closed, CLEAN);
  assertEquals(b.closed, undefined);
  joined.giveUp("it takes nothing");
  assertEquals((await right.closed).kind, "reset");
  assertEquals(received.length, 1);
});
