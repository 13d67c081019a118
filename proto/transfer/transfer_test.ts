import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { ConduitProbe, settled } from "../../tests/support/conduit_probe.ts";
import { FakeTimers } from "../../tests/support/fake_timers.ts";
import {
  MemoryConduit,
  type MemoryPairOptions,
} from "../../tests/support/memory_conduit.ts";
import { forAll, type Prng } from "../../tests/support/prng.ts";
import type { Conduit, ConduitEvents } from "./conduit.ts";
import { join, transfer, type TransferOptions } from "./transfer.ts";

// How this file works. Two memory connections are joined in the middle:
// left ⇄ (a transfer b) ⇄ right. The test owns both outer ends.

const CLEAN = { kind: "clean" } as const;

function joined(pair: MemoryPairOptions = {}, options: TransferOptions = {}) {
  const [leftRoad, a] = MemoryConduit.pair(pair);
  const [b, rightRoad] = MemoryConduit.pair(pair);
  const result = transfer(a, b, options);
  return {
    a,
    b,
    leftRoad,
    rightRoad,
    left: new ConduitProbe(leftRoad),
    right: new ConduitProbe(rightRoad),
    result,
  };
}

Deno.test("octets go both ways, then both ends close in order", async () => {
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
    octetsAToB: 4,
    octetsBToA: 5,
    droppedDatagrams: 0,
    durationMs: 0,
  });
  assertEquals([right.text, left.text], ["ping", "pong!"]);
});

for (const octets of [1_024, 8 * 1024 * 1024]) {
  Deno.test(`writing ${octets} octets and ending at once delivers all`, async () => {
    const { left, right, result } = joined({ windowOctets: 100_000 });
    const sent = pattern(octets);
    left.send(sent);
    left.finish();
    await right.ended;
    assertEquals(same(right.octets, sent), true);
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
  const { left, right } = joined({ windowOctets: 100 });
  right.stopReading();
  left.send(new Uint8Array(150));
  left.finish();
  await settled();
  assertEquals([right.receivedOctets, right.hasEnded], [100, false]);
  right.startReading();
  await right.ended;
  assertEquals(right.receivedOctets, 150);
  right.reset("done");
});

Deno.test("a side that is closed still delivers what it sent", async () => {
  const { left, right, b, result } = joined({ windowOctets: 100 });
  right.finish();
  await left.ended;
  right.stopReading();
  left.send(new Uint8Array(150));
  left.finish();
  assertEquals(await left.closed, CLEAN);
  assertEquals(b.closed, undefined);
  right.startReading();
  await right.ended;
  assertEquals(right.receivedOctets, 150);
  assertEquals((await result).end, CLEAN);
});

Deno.test("a reader that stalls stalls its writer, and nobody's memory grows", async () => {
  const { left, right, a } = joined({ windowOctets: 1_000 });
  right.stopReading();
  left.send(new Uint8Array(50_000));
  await settled();
  assertEquals(right.receivedOctets, 1_000);
  assertEquals(a.unconsumedOctets, 1_000);
  assertEquals(left.queuedOctets, 48_000);
  right.startReading();
  await right.received(50_000);
  assertEquals(a.unconsumedOctets, 0);
  left.reset("done");
});

Deno.test("a stall of one direction leaves the other one running", async () => {
  const { left, right } = joined({ windowOctets: 1_000 });
  right.stopReading();
  left.send(new Uint8Array(50_000));
  await settled();
  right.send("alive");
  await left.received(5);
  assertEquals(left.text, "alive");
  left.reset("done");
});

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
    const road = from === "left" ? ends.leftRoad : ends.rightRoad;
    ends[from].send("abc");
    await ends[to].received(3);
    road.lose("the link went");
    const lost = { kind: "lost", reason: "the link went" } as const;
    assertEquals(await ends[to].closed, lost);
    assertEquals(ends[to].hasEnded, false);
    assertEquals((await ends.result).end, lost);
  });
}

Deno.test("a reset overtakes what is queued, and frees it", async () => {
  const { left, right, result } = joined({ windowOctets: 1_000 });
  right.stopReading();
  left.send(new Uint8Array(5_000));
  await settled();
  left.reset("gone");
  assertEquals((await right.closed).kind, "reset");
  assertEquals((await result).octetsAToB, 1_000);
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
  const { leftRoad, rightRoad, left, right, result } = joined();
  leftRoad.lose("one");
  rightRoad.lose("two");
  assertEquals((await result).end, { kind: "lost", reason: "one" });
  assertEquals([left.end?.kind, right.end?.kind], ["lost", "lost"]);
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
    windowOctets: 1_000,
  });
  for (const octets of [3, 0, 700, 1]) left.send(new Uint8Array(octets));
  await right.received(704);
  assertEquals(right.chunks.map((chunk) => chunk.length), [3, 0, 700, 1]);
  left.reset("done");
  assertEquals((await result).octetsAToB, 704);
});

Deno.test("a datagram that the sink refuses is dropped, counted and credited", async () => {
  const [leftRoad, a] = MemoryConduit.pair({ datagrams: true });
  const left = new ConduitProbe(leftRoad);
  const full = new ScriptedConduit(true);
  const result = transfer(a, full);
  left.send(new Uint8Array(10));
  await settled();
  assertEquals(a.unconsumedOctets, 0);
  left.reset("done");
  full.events.onClose({ kind: "reset", reason: "done" });
  const { droppedDatagrams, octetsAToB } = await result;
  assertEquals([droppedDatagrams, octetsAToB], [1, 0]);
});

Deno.test("refuses to join datagrams with a byte stream", () => {
  const [datagrams] = MemoryConduit.pair({ datagrams: true });
  const [stream] = MemoryConduit.pair();
  assertThrows(() => transfer(datagrams, stream), TypeError, "datagrams");
  assertThrows(() => transfer(stream, datagrams), TypeError, "datagrams");
  assertThrows(() => join(stream, datagrams), TypeError, "datagrams");
});

Deno.test("what nobody waits for is joined all the same", async () => {
  const [leftRoad, a] = MemoryConduit.pair();
  const [b, rightRoad] = MemoryConduit.pair();
  const left = new ConduitProbe(leftRoad);
  const right = new ConduitProbe(rightRoad);
  join(a, b);
  left.send("to the right");
  left.finish();
  await right.ended;
  right.finish();
  assertEquals([await left.closed, await right.closed], [CLEAN, CLEAN]);
  assertEquals(right.text, "to the right");
});

Deno.test("half-closed is said once, and either can be given up then", async () => {
  for (const first of ["left", "right"] as const) {
    const [leftRoad, a] = MemoryConduit.pair();
    const [b, rightRoad] = MemoryConduit.pair();
    const ends = {
      left: new ConduitProbe(leftRoad),
      right: new ConduitProbe(rightRoad),
    };
    const heard: unknown[] = [];
    const joined = join(a, b, undefined, (which) => heard.push(which));
    const other = first === "left" ? "right" : "left";
    ends[first].send("abc");
    ends[first].finish();
    await ends[other].ended;
    assertEquals(heard, [joined]);
    assertEquals(joined.octets, 3);
    joined.giveUp("long enough");
    const reset = { kind: "reset", reason: "long enough" } as const;
    assertEquals([await ends.left.closed, await ends.right.closed], [
      reset,
      reset,
    ]);
  }
});

Deno.test("giving up resets the one that is not closed", async () => {
  const [leftRoad, a] = MemoryConduit.pair({ windowOctets: 100 });
  const [b, rightRoad] = MemoryConduit.pair({ windowOctets: 100 });
  const left = new ConduitProbe(leftRoad);
  const right = new ConduitProbe(rightRoad);
  const heard: unknown[] = [];
  const joined = join(a, b, undefined, (which) => heard.push(which));
  right.finish();
  await left.ended;
  right.stopReading();
  left.send(new Uint8Array(150));
  left.finish();
  assertEquals(await left.closed, CLEAN);
  assertEquals(b.closed, undefined);
  joined.giveUp("it takes nothing");
  assertEquals((await right.closed).kind, "reset");
  assertEquals(heard.length, 1);
});

Deno.test("a conduit that ignores its window is reset, not buffered", async () => {
  const source = new ScriptedConduit();
  const sink = new ScriptedConduit();
  const result = transfer(source, sink, { queueOctetsMax: 1_000 });
  source.events.onData(new Uint8Array(1_000));
  assertEquals(source.resets, []);
  source.events.onData(new Uint8Array(1));
  assertStringIncludes(source.resets[0]!, "1001 octets");
  assertEquals(sink.resets, source.resets);
  source.events.onData(new Uint8Array(1_000_000));
  for (const { events } of [source, sink]) {
    events.onClose({ kind: "reset", reason: "by us" });
  }
  assertStringIncludes(reasonOf((await result).end), "at most 1000");
});

Deno.test("a conduit that calls its early close clean is lost", async () => {
  const { left, right, rightRoad } = joined();
  left.send("abc");
  await right.received(3);
  const source = new ScriptedConduit();
  const [b, far] = MemoryConduit.pair();
  const probe = new ConduitProbe(far);
  const result = transfer(source, b);
  source.events.onClose(CLEAN);
  assertEquals((await probe.closed).kind, "lost");
  assertEquals((await result).end.kind, "lost");
  rightRoad.lose("done");
});

Deno.test("a closed conduit hears nothing more", () => {
  const source = new ScriptedConduit();
  const sink = new ScriptedConduit();
  transfer(source, sink);
  source.events.onData(Uint8Array.of(1, 2, 3));
  source.events.onEnd();
  sink.events.onEnd();
  source.events.onClose(CLEAN);
  sink.write = (chunk) => chunk.length;
  sink.events.onWritable();
  assertEquals([sink.ends, source.consumedOctets], [1, 0]);
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

Deno.test("onWritable from inside write loses no octet", async () => {
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
  assertEquals(source.consumedOctets, 5);
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

Deno.test("any schedule: order kept, nothing lost, memory bounded", async () => {
  await forAll(100, async (prng) => {
    const schedule = new Schedule(prng);
    for (let step = 0; step < 60 && !schedule.isBroken; step++) {
      schedule.step();
      if (prng.below(3) > 0) await settled();
      schedule.checkOnTheWay();
    }
    await schedule.finish();
  });
});

type Side = "left" | "right";

/** Random things done to both ends, and what must hold all along. */
class Schedule {
  readonly #prng: Prng;
  readonly #windowOctets: number;
  readonly #ends: ReturnType<typeof joined>;
  readonly #sent = { left: 0, right: 0 };
  readonly #finished = { left: false, right: false };
  #broken: "reset" | "lost" | undefined;

  constructor(prng: Prng) {
    this.#prng = prng;
    this.#windowOctets = 1 + prng.below(3_000);
    this.#ends = joined({
      windowOctets: this.#windowOctets,
      cut: (octets) => 1 + prng.below(octets),
    });
  }

  get isBroken(): boolean {
    return this.#broken !== undefined;
  }

  step(): void {
    const side: Side = this.#prng.pick(["left", "right"] as const);
    const { left, right, leftRoad, rightRoad, a, b } = this.#ends;
    const probe = side === "left" ? left : right;
    const roads = [leftRoad, rightRoad, a, b];
    switch (this.#prng.below(9)) {
      case 0:
        return probe.stopReading();
      case 1:
        return probe.startReading();
      case 2:
        return this.#prng.pick(roads).stall();
      case 3:
        return roads.forEach((road) => road.resume());
      case 4:
        if (this.#prng.below(5) === 0) this.#finishSide(side);
        return;
      case 5:
        if (this.#prng.below(25) === 0) this.#break(side);
        return;
      default:
        this.#send(side);
    }
  }

  checkOnTheWay(): void {
    const { left, right, a, b } = this.#ends;
    for (const conduit of [a, b]) {
      assertEquals(conduit.unconsumedOctets <= this.#windowOctets, true);
    }
    assertEquals(right.receivedOctets <= this.#sent.left, true);
    assertEquals(left.receivedOctets <= this.#sent.right, true);
    if (right.hasEnded) assertEquals(right.receivedOctets, this.#sent.left);
    if (left.hasEnded) assertEquals(left.receivedOctets, this.#sent.right);
  }

  /** Lets everything go and judges the outcome. */
  async finish(): Promise<void> {
    const { left, right, leftRoad, rightRoad, a, b } = this.#ends;
    for (const road of [leftRoad, rightRoad, a, b]) road.resume();
    for (const side of ["left", "right"] as const) {
      this.#ends[side].startReading();
      if (!this.isBroken) this.#finishSide(side);
    }
    const { end, octetsAToB, octetsBToA } = await this.#ends.result;
    if (!this.isBroken || end.kind === "clean") {
      assertEquals([left.end, right.end, end], [CLEAN, CLEAN, CLEAN]);
      assertEquals([octetsAToB, octetsBToA], [
        this.#sent.left,
        this.#sent.right,
      ]);
      assertEquals(right.receivedOctets, octetsAToB);
      assertEquals(left.receivedOctets, octetsBToA);
    } else {
      assertEquals(end, { kind: this.#broken, reason: "broken" });
    }
    for (const { octets } of [left, right]) {
      assertEquals(same(octets, pattern(octets.length)), true);
    }
  }

  #send(side: Side): void {
    if (this.#finished[side]) return;
    const octets = this.#prng.below(5_000);
    this.#ends[side].send(pattern(octets, this.#sent[side]));
    this.#sent[side] += octets;
  }

  #finishSide(side: Side): void {
    if (this.#finished[side]) return;
    this.#finished[side] = true;
    this.#ends[side].finish();
  }

  #break(side: Side): void {
    this.#broken = this.#prng.pick(["reset", "lost"] as const);
    if (this.#broken === "reset") this.#ends[side].reset("broken");
    else if (side === "left") this.#ends.leftRoad.lose("broken");
    else this.#ends.rightRoad.lose("broken");
  }
}

/** A conduit that takes nothing and does only what the test says. */
class ScriptedConduit implements Conduit {
  events!: ConduitEvents;
  readonly resets: string[] = [];
  consumedOctets = 0;
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

  consumed(octets: number): void {
    this.consumedOctets += octets;
  }
}

/** Octets that tell where in the stream they belong. */
function pattern(octets: number, from = 0): Uint8Array {
  const made = new Uint8Array(octets);
  for (let i = 0; i < octets; i++) {
    const at = from + i;
    made[i] = (at * 31 + (at >>> 8) * 17) & 0xff;
  }
  return made;
}

function same(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length &&
    one.every((octet, at) => octet === other[at]);
}

function reasonOf(end: { kind: string; reason?: string }): string {
  return end.reason ?? "";
}
